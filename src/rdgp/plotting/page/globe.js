// A globe on a two-dimensional canvas: orthographic projection, turning, zooming.

const DEGREE = Math.PI / 180;

function toVector(lat, lon) {
  const c = Math.cos(lat * DEGREE);
  return [c * Math.cos(lon * DEGREE), c * Math.sin(lon * DEGREE), Math.sin(lat * DEGREE)];
}

// Rows of the rotation: to the right, up, and toward the eye.
function axesOf(view) {
  const sinLat = Math.sin(view.lat * DEGREE), cosLat = Math.cos(view.lat * DEGREE);
  const sinLon = Math.sin(view.lon * DEGREE), cosLon = Math.cos(view.lon * DEGREE);
  return [-sinLon, cosLon, 0, -sinLat * cosLon, -sinLat * sinLon, cosLat, cosLat * cosLon, cosLat * sinLon, sinLat];
}

function wrap(lon) {
  return ((lon + 540) % 360 + 360) % 360 - 180;
}

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function createGlobe(canvas, start, draw) {
  const globe = { canvas, context: canvas.getContext("2d"), view: { ...start }, moving: false, width: 0, height: 0, onMove: [] };
  let asked = false, settle = 0;

  globe.radius = () => 0.47 * Math.min(globe.width, globe.height) * globe.view.zoom;

  globe.project = (axes, x, y, z) => {
    const r = globe.radius();
    return [
      globe.width / 2 + r * (axes[0] * x + axes[1] * y + axes[2] * z),
      globe.height / 2 - r * (axes[3] * x + axes[4] * y + axes[5] * z),
      axes[6] * x + axes[7] * y + axes[8] * z,
    ];
  };

  globe.placeAt = (px, py) => {
    const r = globe.radius(), x = (px - globe.width / 2) / r, y = (globe.height / 2 - py) / r;
    const rest = 1 - x * x - y * y;
    if (rest < 0) return null;
    const a = axesOf(globe.view), z = Math.sqrt(rest);
    const v = [0, 1, 2].map((k) => a[k] * x + a[3 + k] * y + a[6 + k] * z);
    return { lat: Math.asin(Math.max(-1, Math.min(1, v[2]))) / DEGREE, lon: Math.atan2(v[1], v[0]) / DEGREE };
  };

  globe.refresh = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      const ratio = Math.min(window.devicePixelRatio || 1, 2);
      const width = canvas.clientWidth, height = canvas.clientHeight;
      if (!width || !height) return;
      if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
      }
      Object.assign(globe, { width, height, ratio });
      globe.context.setTransform(ratio, 0, 0, ratio, 0, 0);
      globe.context.clearRect(0, 0, width, height);
      draw(globe);
    });
  };

  globe.turn = (dLat, dLon) => {
    globe.view.lat = Math.max(-90, Math.min(90, globe.view.lat + dLat));
    globe.view.lon = wrap(globe.view.lon + dLon);
    moved();
  };

  globe.zoomBy = (factor) => {
    globe.view.zoom = Math.max(0.7, Math.min(14, globe.view.zoom * factor));
    moved();
  };

  globe.reset = () => {
    Object.assign(globe.view, start);
    moved();
  };

  function moved() {
    globe.moving = true;
    clearTimeout(settle);
    settle = setTimeout(() => { globe.moving = false; globe.refresh(); globe.onMove.forEach((f) => f()); }, 160);
    globe.onMove.forEach((f) => f());
    globe.refresh();
  }

  listen(globe);
  new ResizeObserver(globe.refresh).observe(canvas);
  return globe;
}

function listen(globe) {
  const canvas = globe.canvas, pointers = new Map();
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return Math.hypot(a.x - b.x, a.y - b.y);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) return;
    const before = pointers.size === 2 ? spread() : 0;
    const dx = event.clientX - last.x, dy = event.clientY - last.y;
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (pointers.size === 2) globe.zoomBy(spread() / Math.max(before, 1));
    else globe.turn(dy / globe.radius() / DEGREE, -dx / globe.radius() / DEGREE);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, (event) => pointers.delete(event.pointerId));
  }
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    globe.zoomBy(Math.exp(-Math.max(-120, Math.min(120, event.deltaY)) / 500));
  }, { passive: false });
  canvas.addEventListener("dblclick", globe.reset);
  canvas.addEventListener("keydown", (event) => {
    const step = 8 / globe.view.zoom;
    const turns = { ArrowLeft: [0, -step], ArrowRight: [0, step], ArrowUp: [step, 0], ArrowDown: [-step, 0] };
    if (turns[event.key]) globe.turn(...turns[event.key]);
    else if (event.key === "+" || event.key === "=") globe.zoomBy(1.2);
    else if (event.key === "-") globe.zoomBy(1 / 1.2);
    else return;
    event.preventDefault();
  });
}

function drawDisc(globe, fill) {
  const c = globe.context, r = globe.radius(), x = globe.width / 2, y = globe.height / 2;
  const halo = c.createRadialGradient(x, y, r * 0.98, x, y, r * 1.045);
  halo.addColorStop(0, css("--halo"));
  halo.addColorStop(1, "transparent");
  c.fillStyle = halo;
  c.fillRect(0, 0, globe.width, globe.height);
  c.beginPath();
  c.arc(x, y, r, 0, 2 * Math.PI);
  c.fillStyle = fill;
  c.fill();
}

function drawRim(globe) {
  const c = globe.context;
  c.beginPath();
  c.arc(globe.width / 2, globe.height / 2, globe.radius(), 0, 2 * Math.PI);
  c.strokeStyle = css("--rim");
  c.lineWidth = 1;
  c.stroke();
}

// Lines are vectors one after the other; `lengths` says how many belong to each line.
function drawLines(globe, axes, lines, color, width) {
  const c = globe.context, p = lines.points;
  c.beginPath();
  let at = 0;
  for (const length of lines.lengths) {
    let pen = false;
    for (let k = at; k < at + length; k++) {
      const [x, y, z] = globe.project(axes, p[3 * k], p[3 * k + 1], p[3 * k + 2]);
      if (z > 0 && pen) c.lineTo(x, y);
      else if (z > 0) c.moveTo(x, y);
      pen = z > 0;
    }
    at += length;
  }
  c.strokeStyle = color;
  c.lineWidth = width;
  c.lineJoin = "round";
  c.stroke();
}

function drawDots(globe, axes, points, color, size) {
  const c = globe.context;
  c.fillStyle = color;
  for (let k = 0; k < points.length; k += 3) {
    const [x, y, z] = globe.project(axes, points[k], points[k + 1], points[k + 2]);
    if (z <= 0 || x < 0 || y < 0 || x > globe.width || y > globe.height) continue;
    c.beginPath();
    c.arc(x, y, size, 0, 2 * Math.PI);
    c.fill();
  }
}
