// The sphere before and after each hidden layer: coasts and graticule carried along.

const BINS = 16;

function createLayers(content, ramp) {
  const places = content.places.map(decodeVectors), lengths = content.lengths, last = places.length - 1;
  const slider = document.getElementById("layer");
  const globe = createGlobe(document.getElementById("layers"), { lat: 20, lon: 0, zoom: 1 }, draw);

  function between(t) {
    const k = Math.min(Math.floor(t), last - 1), a = t - k, from = places[k], to = places[k + 1];
    const points = new Float32Array(from.length);
    for (let i = 0; i < from.length; i += 3) {
      const x = from[i] + a * (to[i] - from[i]), y = from[i + 1] + a * (to[i + 1] - from[i + 1]), z = from[i + 2] + a * (to[i + 2] - from[i + 2]);
      const norm = Math.hypot(x, y, z);
      points[i] = x / norm;
      points[i + 1] = y / norm;
      points[i + 2] = z / norm;
    }
    return points;
  }

  function draw() {
    const axes = axesOf(globe.view), points = between(Number(slider.value));
    drawDisc(globe, css("--sea"));
    drawLines(globe, axes, { points: places[0], lengths }, css("--mesh"), 0.9);
    const paths = sortByDistance(points, axes);
    const colors = ramp(), context = globe.context;
    paths.forEach(({ thin, thick }, bin) => {
      const c = 3 * colorIndex(bin / (BINS - 1));
      context.strokeStyle = `rgb(${colors[c]}, ${colors[c + 1]}, ${colors[c + 2]})`;
      context.lineWidth = 0.8;
      context.stroke(thin);
      context.lineWidth = 1.5;
      context.stroke(thick);
    });
    drawRim(globe);
  }

  function sortByDistance(points, axes) {
    const paths = Array.from({ length: BINS }, () => ({ thin: new Path2D(), thick: new Path2D() })), start = places[0];
    let at = 0;
    lengths.forEach((length, line) => {
      for (let k = at; k < at + length - 1; k++) {
        const [x0, y0, z0] = globe.project(axes, points[3 * k], points[3 * k + 1], points[3 * k + 2]);
        const [x1, y1, z1] = globe.project(axes, points[3 * k + 3], points[3 * k + 4], points[3 * k + 5]);
        if (z0 <= 0 || z1 <= 0) continue;
        const far = Math.hypot(points[3 * k] - start[3 * k], points[3 * k + 1] - start[3 * k + 1], points[3 * k + 2] - start[3 * k + 2]);
        const bin = Math.min(BINS - 1, Math.floor((BINS * far) / DEGREE / content.top));
        const path = line < content.meshLines ? paths[bin].thin : paths[bin].thick;
        path.moveTo(x0, y0);
        path.lineTo(x1, y1);
      }
      at += length;
    });
    return paths;
  }

  slider.addEventListener("input", globe.refresh);
  document.getElementById("play").addEventListener("click", () => play(slider, last, globe.refresh));
  return globe;
}

// The end of the ramp that would vanish in the background is left out.
function colorIndex(share) {
  return Math.round(darkness.matches ? 80 + 175 * share : 210 * share);
}

function play(slider, last, refresh) {
  const start = performance.now();
  function step(now) {
    const t = Math.max(0, (now - start) / 1600), k = Math.floor(t), a = Math.min(1, (t - k) * 1.35);
    slider.value = Math.min(last, k + a * a * (3 - 2 * a));
    refresh();
    if (t < last) requestAnimationFrame(step);
    else { slider.value = last; refresh(); }
  }
  requestAnimationFrame(step);
}
