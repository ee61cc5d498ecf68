// Values on a grid: lookup, color of every pixel, arrows, streams.

const MISSING = 65535;

function decodeBytes(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let k = 0; k < raw.length; k++) bytes[k] = raw.charCodeAt(k);
  return bytes;
}

function decodeFloats(text) {
  return new Float32Array(decodeBytes(text).buffer);
}

function decodeVectors(text) {
  return Float32Array.from(new Int16Array(decodeBytes(text).buffer), (value) => value / 32767);
}

function decodeField(field) {
  const packed = new Uint16Array(decodeBytes(field.data).buffer);
  const values = Float32Array.from(packed, (q) => (q === MISSING ? NaN : field.offset + field.scale * q));
  return { ...field, values };
}

// A table from evenly spaced degrees to fractional rows or columns, NaN outside the grid.
function indexTable(nodes, low, high, margin) {
  const steps = 10, table = new Float32Array((high - low) * steps + 2);
  let k = 0;
  for (let i = 0; i < table.length; i++) {
    const at = low + i / steps;
    while (k < nodes.length - 2 && nodes[k + 1] <= at) k++;
    const gap = nodes[k + 1] - nodes[k];
    const index = nodes.length > 1 ? k + (at - nodes[k]) / gap : 0;
    const outside = at < nodes[0] - margin * gap || at > nodes[nodes.length - 1] + margin * gap;
    table[i] = outside ? NaN : Math.max(0, Math.min(nodes.length - 1, index));
  }
  return (at) => {
    const place = (at - low) * steps, i = Math.floor(place);
    return table[i] + (place - i) * (table[i + 1] - table[i]);
  };
}

function createGrid(content) {
  const lat = decodeFloats(content.lat), lon = decodeFloats(content.lon), width = lon.length;
  const west = Math.floor(lon[0]) - 1;
  const row = indexTable(lat, -91, 91, 1), column = indexTable(lon, west, west + 362, 0.5);
  const columnOf = (degrees) => column(west + 1 + (((degrees - west - 1) % 360) + 360) % 360);
  const fields = content.fields.map(decodeField);

  function nearest(place) {
    const i = Math.round(row(place.lat)), j = Math.round(columnOf(place.lon));
    return Number.isNaN(i + j) ? null : { index: i * width + j, lat: lat[i], lon: wrap(lon[j]) };
  }

  function sample(values, latitude, longitude) {
    const y = row(latitude), x = columnOf(longitude);
    if (Number.isNaN(x + y)) return NaN;
    const i = Math.min(Math.floor(y), Math.max(lat.length - 2, 0)), j = Math.min(Math.floor(x), Math.max(width - 2, 0));
    const a = y - i, b = x - j, k = i * width + j;
    const down = a > 0 ? width : 0, right = b > 0 ? 1 : 0;
    const mixed = (1 - a) * ((1 - b) * values[k] + b * values[k + right]) + a * ((1 - b) * values[k + down] + b * values[k + down + right]);
    return Number.isNaN(mixed) ? values[k + (a < 0.5 ? 0 : down) + (b < 0.5 ? 0 : right)] : mixed;
  }

  return { fields, nearest, sample, get: (key) => fields.find((field) => field.key === key) };
}

// Color every pixel of the visible disc; coarser while the globe moves.
function paintField(globe, grid, field, table, buffer) {
  const detail = globe.moving ? 0.55 : Math.min(globe.ratio, 1.25);
  const width = Math.round(globe.width * detail), height = Math.round(globe.height * detail);
  buffer.width = width;
  buffer.height = height;
  const context = buffer.getContext("2d"), image = context.createImageData(width, height), pixels = image.data;
  const r = globe.radius() * detail, a = axesOf(globe.view), [low, high] = field.limits;
  for (let j = 0; j < height; j++) {
    const y = (height / 2 - j - 0.5) / r;
    for (let i = 0; i < width; i++) {
      const x = (i + 0.5 - width / 2) / r, rest = 1 - x * x - y * y;
      if (rest < -0.02) continue;
      const z = Math.sqrt(Math.max(rest, 0));
      const east = a[0] * x + a[3] * y + a[6] * z, north = a[1] * x + a[4] * y + a[7] * z, up = a[5] * y + a[8] * z;
      const value = grid.sample(field.values, Math.asin(Math.max(-1, Math.min(1, up))) / DEGREE, Math.atan2(north, east) / DEGREE);
      if (Number.isNaN(value)) continue;
      const c = 3 * Math.max(0, Math.min(255, Math.round((255 * (value - low)) / (high - low))));
      const at = 4 * (j * width + i), shade = 0.84 + 0.16 * Math.sqrt(z);
      pixels[at] = table[c] * shade;
      pixels[at + 1] = table[c + 1] * shade;
      pixels[at + 2] = table[c + 2] * shade;
      pixels[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  const target = globe.context;
  target.save();
  target.beginPath();
  target.arc(globe.width / 2, globe.height / 2, globe.radius(), 0, 2 * Math.PI);
  target.clip();
  target.imageSmoothingQuality = "high";
  target.drawImage(buffer, 0, 0, globe.width, globe.height);
  target.restore();
}

// Wind at a place as a vector of space.
function windAt(grid, wind, lat, lon) {
  const u = grid.sample(grid.get(wind.u).values, lat, lon), v = grid.sample(grid.get(wind.v).values, lat, lon);
  const sinLat = Math.sin(lat * DEGREE), cosLat = Math.cos(lat * DEGREE), sinLon = Math.sin(lon * DEGREE), cosLon = Math.cos(lon * DEGREE);
  return [-u * sinLon - v * sinLat * cosLon, u * cosLon - v * sinLat * sinLon, v * cosLat];
}

// Fibonacci points: equally dense all over the globe.
function lattice(grid, wind, count) {
  const arrows = [];
  for (let k = 0; k < count; k++) {
    const lat = Math.asin(1 - (2 * k + 1) / count) / DEGREE, lon = wrap((720 * k) / (1 + Math.sqrt(5)));
    const vector = windAt(grid, wind, lat, lon);
    if (!Number.isNaN(vector[0])) arrows.push({ place: toVector(lat, lon), vector });
  }
  return { arrows, spacing: Math.sqrt((4 * Math.PI) / count) };
}

function drawArrows(globe, axes, field, reference) {
  const c = globe.context, shafts = new Path2D(), heads = new Path2D();
  for (const { place: p, vector: w } of field.arrows) {
    const speed = Math.hypot(...w) / reference;
    if (speed < 0.02 || axes[6] * p[0] + axes[7] * p[1] + axes[8] * p[2] < 0.03) continue;
    const half = (0.62 * field.spacing * Math.min(speed, 1.8)) / speed / reference;
    const [x0, y0] = globe.project(axes, p[0] - half * w[0], p[1] - half * w[1], p[2] - half * w[2]);
    const [x1, y1] = globe.project(axes, p[0] + half * w[0], p[1] + half * w[1], p[2] + half * w[2]);
    if (x1 < -20 || y1 < -20 || x1 > globe.width + 20 || y1 > globe.height + 20) continue;
    addArrow(shafts, heads, x0, y0, x1, y1);
  }
  c.strokeStyle = c.fillStyle = css("--arrow");
  c.lineWidth = 1.1;
  c.stroke(shafts);
  c.fill(heads);
}

function addArrow(shafts, heads, x0, y0, x1, y1) {
  const length = Math.hypot(x1 - x0, y1 - y0);
  if (length < 0.8) return;
  const head = Math.min(5.5, 0.55 * length + 1), ux = (x1 - x0) / length, uy = (y1 - y0) / length;
  const bx = x1 - head * ux, by = y1 - head * uy;
  shafts.moveTo(x0, y0);
  shafts.lineTo(bx, by);
  heads.moveTo(x1, y1);
  heads.lineTo(bx - 0.4 * head * uy, by + 0.4 * head * ux);
  heads.lineTo(bx + 0.4 * head * uy, by - 0.4 * head * ux);
  heads.closePath();
}

// Particles carried by the wind, drawn with fading tails on a canvas of their own.
function createStreams(globe, canvas, grid, wind) {
  const streams = { running: false }, count = 1400, context = canvas.getContext("2d");
  let particles = [];

  function seed() {
    const reach = Math.min(1, 1.05 / globe.view.zoom), a = axesOf(globe.view);
    const angle = 2 * Math.PI * Math.random(), r = reach * Math.sqrt(Math.random()), z = Math.sqrt(Math.max(0, 1 - r * r));
    const x = r * Math.cos(angle), y = r * Math.sin(angle);
    return { p: [0, 1, 2].map((k) => a[k] * x + a[3 + k] * y + a[6 + k] * z), age: Math.floor(70 * Math.random()) };
  }

  function step() {
    if (!streams.running) return;
    const axes = axesOf(globe.view), pace = 0.011 / wind.reference / globe.view.zoom, path = new Path2D();
    context.globalCompositeOperation = "destination-in";
    context.fillStyle = "rgba(0, 0, 0, 0.93)";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.globalCompositeOperation = "source-over";
    particles = particles.map((particle) => advance(particle, axes, pace, path));
    context.strokeStyle = css("--stream");
    context.lineWidth = 1.15;
    context.stroke(path);
    requestAnimationFrame(step);
  }

  function advance(particle, axes, pace, path) {
    const p = particle.p, lat = Math.asin(Math.max(-1, Math.min(1, p[2]))) / DEGREE, lon = Math.atan2(p[1], p[0]) / DEGREE;
    const w = windAt(grid, wind, lat, lon), q = p.map((x, k) => x + pace * w[k]), norm = Math.hypot(...q);
    if (particle.age > 90 || Number.isNaN(norm)) return { ...seed(), age: 0 };
    const next = q.map((x) => x / norm), [x0, y0, z0] = globe.project(axes, ...p), [x1, y1, z1] = globe.project(axes, ...next);
    if (z0 < 0.02 || z1 < 0.02) return { ...seed(), age: 0 };
    path.moveTo(x0, y0);
    path.lineTo(x1, y1);
    return { p: next, age: particle.age + 1 };
  }

  streams.restart = () => {
    canvas.width = globe.canvas.width;
    canvas.height = globe.canvas.height;
    context.setTransform(globe.ratio || 1, 0, 0, globe.ratio || 1, 0, 0);
    particles = streams.running ? Array.from({ length: count }, seed) : [];
  };
  streams.show = (on) => {
    const start = on && !streams.running;
    streams.running = on;
    streams.restart();
    if (start) requestAnimationFrame(step);
  };
  globe.onMove.push(streams.restart);
  return streams;
}
