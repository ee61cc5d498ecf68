// The page: one globe of the field, its choices, hover values; one globe of the layers.

const content = JSON.parse(document.getElementById("content").textContent);
const darkness = window.matchMedia("(prefers-color-scheme: dark)");
const ramps = {};
for (const [name, tables] of Object.entries(content.ramps)) {
  ramps[name] = { light: decodeBytes(tables.light), dark: decodeBytes(tables.dark) };
}
const rampOf = (name) => ramps[name][darkness.matches ? "dark" : "light"];

function number(value) {
  if (Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  return size !== 0 && (size < 0.01 || size >= 1e5) ? value.toExponential(2) : value.toFixed(size < 1 ? 3 : 2);
}

function degrees(value, positive, negative) {
  return `${Math.abs(value).toFixed(1)}° ${value >= 0 ? positive : negative}`;
}

function addChoice(parent, type, label, checked, act, key) {
  const box = document.createElement("label"), input = document.createElement("input"), text = document.createElement("span");
  Object.assign(input, { type, checked, name: parent.id, value: key });
  text.textContent = label;
  input.addEventListener("change", () => act(input.checked));
  box.append(input, text);
  parent.append(box);
}

function niceTicks(low, high) {
  const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((k) => k * power >= rough) * power, ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push(k * step);
  return ticks.map((value) => ({ value, text: String(Number(value.toPrecision(6))) }));
}

function drawBar(id, table, [low, high], indexOf) {
  const bar = document.getElementById(id), context = bar.getContext("2d"), image = context.createImageData(256, 1);
  for (let k = 0; k < 256; k++) {
    const c = 3 * indexOf(k / 255);
    image.data.set([table[c], table[c + 1], table[c + 2], 255], 4 * k);
  }
  context.putImageData(image, 0, 0);
  const ticks = bar.nextElementSibling;
  ticks.replaceChildren(...niceTicks(low, high).map(({ value, text }) => {
    const tick = document.createElement("i");
    tick.textContent = text;
    tick.style.left = `${(100 * (value - low)) / (high - low)}%`;
    return tick;
  }));
}

function drawFieldBar(field) {
  drawBar("bar", rampOf(field.ramp), field.limits, (share) => Math.round(255 * share));
  document.getElementById("bar-label").textContent = field.label + (field.units ? ` (${field.units})` : "");
}

function createField() {
  const grid = createGrid(content.grid), wind = content.wind, buffer = document.createElement("canvas");
  const lines = (source) => ({ points: decodeVectors(source.points), lengths: source.lengths });
  const coast = lines(content.coastline), mesh = lines(content.graticule), dots = decodeVectors(content.observations);
  const shown = { arrows: Boolean(wind), dots: true }, densities = new Map();
  const colored = grid.fields.filter((field) => field.ramp);
  let field = grid.get(content.first);

  // About the same number of pixels between arrows, whatever the zoom and the window.
  function arrowsFor(radius) {
    const count = radius < 210 ? 500 : radius < 430 ? 1000 : radius < 860 ? 3200 : radius < 1750 ? 11000 : 30000;
    if (!densities.has(count)) densities.set(count, lattice(grid, wind, count));
    return densities.get(count);
  }

  const globe = createGlobe(document.getElementById("globe"), content.view, () => {
    const axes = axesOf(globe.view);
    drawDisc(globe, css("--sea"));
    paintField(globe, grid, field, rampOf(field.ramp), buffer);
    drawLines(globe, axes, mesh, css("--mesh"), 0.8);
    drawLines(globe, axes, coast, css("--coast"), 1);
    if (shown.dots) drawDots(globe, axes, dots, css("--dot"), Math.min(3, 0.9 + 0.35 * globe.view.zoom));
    if (shown.arrows) drawArrows(globe, axes, arrowsFor(globe.radius()), wind.reference);
    drawRim(globe);
    document.documentElement.dataset.ready = "true";
  });

  const colors = document.getElementById("colors"), toggles = document.getElementById("shown");
  const choose = (next) => { field = next; drawFieldBar(field); globe.refresh(); };
  for (const option of colored) addChoice(colors, "radio", option.short, option === field, () => choose(option), option.key);
  if (wind) {
    const streams = createStreams(globe, document.getElementById("flow"), grid, wind);
    addChoice(toggles, "checkbox", "Arrows", true, (on) => { shown.arrows = on; globe.refresh(); }, "arrows");
    addChoice(toggles, "checkbox", "Streams", false, streams.show, "streams");
  }
  if (dots.length) addChoice(toggles, "checkbox", "Observations", true, (on) => { shown.dots = on; globe.refresh(); }, "dots");
  toggles.previousElementSibling.hidden = !toggles.children.length;
  drawFieldBar(field);
  darkness.addEventListener("change", () => { drawFieldBar(field); globe.refresh(); });
  showValues(globe, grid);
  return globe;
}

function showValues(globe, grid) {
  const tip = document.getElementById("tip");
  globe.canvas.addEventListener("pointermove", (event) => {
    const bounds = globe.canvas.getBoundingClientRect(), x = event.clientX - bounds.left, y = event.clientY - bounds.top;
    const place = event.buttons ? null : globe.placeAt(x, y), cell = place && grid.nearest(place);
    tip.hidden = !cell;
    if (!cell) return;
    const title = document.createElement("b"), table = document.createElement("table");
    title.textContent = `${degrees(cell.lat, "N", "S")}, ${degrees(cell.lon, "E", "W")}`;
    for (const field of grid.fields) {
      const row = table.insertRow();
      row.insertCell().textContent = field.short;
      row.insertCell().textContent = `${number(field.values[cell.index])} ${field.units}`;
    }
    tip.replaceChildren(title, table);
    const left = x + 18 + tip.offsetWidth > bounds.width ? x - 18 - tip.offsetWidth : x + 18;
    tip.style.left = `${Math.max(0, Math.min(left, bounds.width - tip.offsetWidth))}px`;
    tip.style.top = `${Math.max(0, Math.min(y - 20, bounds.height - tip.offsetHeight))}px`;
  });
  globe.canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
}

createField();
if (content.layers) {
  const layers = createLayers(content.layers, () => rampOf("scalar"));
  const drawLayerBar = () => drawBar("layer-bar", rampOf("scalar"), [0, content.layers.top], colorIndex);
  darkness.addEventListener("change", () => { drawLayerBar(); layers.refresh(); });
  drawLayerBar();
}
