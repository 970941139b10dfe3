// The heatmaps on the page: drawing, pointing, zooming, moving with keys.

let lastPlaces = new Map();   // by canvas: the place of its cells
let dragged = null;

function renderHeatmaps(theme) {
  const sentence = shown();
  const heads = state.other === null ? [state.head] : [state.head, state.other];
  const matrices = heads.map((head) => weightsOf(sentence, head, state.mask, state.temperature));
  const scale = colorScale(state.scale, matrices, sentence.length, state.hidesSink);
  byId('heat-other-box').hidden = state.other === null;
  heads.forEach((head, index) => {
    const canvas = byId(index ? 'heat-other' : 'heat');
    byId(index ? 'heat-other-name' : 'heat-name').textContent = headName(sentence, head);
    canvas.setAttribute('aria-label', `Weights of ${headName(sentence, head)}: queries down, keys across. ` +
      'Arrow keys move, Enter holds, plus, minus and 0 zoom.');
    const {context, width} = canvasOf(canvas);
    const cursor = state.held || pointer.q !== null || document.activeElement === canvas ? chosenCell() : null;
    lastPlaces.set(canvas, drawMatrix(context, matrixModel(sentence, head, index, scale), width, {theme, cursor}));
  });
  const {context, width} = canvasOf(byId('bar'));
  drawColorBar(context, scale, [0, 0, width], theme);
  byId('heat-note').textContent = heatNote(sentence, lastPlaces.get(byId('heat')));
}

function heatNote(sentence, {view, layout}) {
  visibleOf(sentence, state.mask);
  const hidden = sentence.numVisible < sentence.numQueries * sentence.numKeys;
  return ['A row is the token that asks, a column a token that is listened to.',
    hidden ? 'Hatched: what the mask hides.' : '',
    state.hidesSink ? 'The first column is left out of picture and scale.' : '',
    layout.cell < 1 ? 'Each point is the largest of several weights.' : '',
    view.rows < sentence.numQueries ? `Tokens ${view.q - sentence.firstQuery} to ${view.q - sentence.firstQuery + view.rows - 1} ask.` : ''].filter(Boolean).join(' ');
}

function cellAt(canvas, event) {
  const {view, layout} = lastPlaces.get(canvas);
  const box = canvas.getBoundingClientRect();
  const q = Math.floor((event.clientY - box.top - layout.top) / layout.cell);
  const k = Math.floor((event.clientX - box.left - layout.left) / layout.cell);
  return q >= 0 && k >= 0 && q < view.rows && k < view.columns ? {q: q + view.q, k: k + view.k} : null;
}

// Zooms to `span` cells, keeping the cells around `center` in place.
function zoomTo(span, center) {
  const view = windowOf(shown());
  const most = wholeOf(shown()).span;
  const next = clamp(Math.round(span), Math.min(4, most), most);
  const share = {q: (center.q - view.q + 0.5) / view.span, k: (center.k - view.k + 0.5) / view.span};
  Object.assign(zoom, {span: next, q: center.q + 0.5 - share.q * next, k: center.k + 0.5 - share.k * next});
  requestRender();
}
const zoomIn = (center) => zoomTo(Math.floor(windowOf(shown()).span / 1.5), center);
const zoomOut = (center) => zoomTo(Math.ceil(windowOf(shown()).span * 1.5), center);

// Moves the window so that it contains a cell.
function reveal({q, k}) {
  const view = windowOf(shown());
  Object.assign(zoom, {q: clamp(view.q, q - view.rows + 1, q), k: clamp(view.k, k - view.columns + 1, k)});
}

function moveCursor(event) {
  const steps = {ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1]};
  const cell = chosenCell();
  const {length, firstQuery, numKeys} = shown();
  const ends = {Home: {q: cell.q, k: 0}, End: {q: cell.q, k: numKeys - 1}};
  if (event.key in steps) {
    const [down, right] = steps[event.key];
    Object.assign(cell, {q: clamp(cell.q + down, firstQuery, length - 1), k: clamp(cell.k + right, 0, numKeys - 1)});
  } else if (event.key in ends) {
    Object.assign(cell, ends[event.key]);
  } else if (event.key === 'Enter' || event.key === ' ') {
    event.preventDefault();
    return update({...cell, held: !state.held});
  } else {
    return;
  }
  event.preventDefault();
  Object.assign(pointer, {q: null, k: null});
  reveal(cell);
  update({...cell, held: true});
}

function listenToHeatmap(canvas) {
  canvas.addEventListener('pointermove', (event) => {
    const cell = cellAt(canvas, event);
    if (dragged && event.buttons) return drag(canvas, event);
    if (!state.held) {
      Object.assign(pointer, cell ?? {q: null, k: null});
      requestRender();
    }
    canvas.title = cell ? cellTitle(canvas, cell) : '';
  });
  canvas.addEventListener('pointerleave', () => {
    Object.assign(pointer, {q: null, k: null});
    requestRender();
  });
  canvas.addEventListener('pointerdown', (event) => {
    dragged = {x: event.clientX, y: event.clientY, q: windowOf(shown()).q, k: windowOf(shown()).k, moved: false};
  });
  canvas.addEventListener('click', (event) => {
    const cell = cellAt(canvas, event);
    const isSame = cell && state.held && cell.q === state.q && cell.k === state.k;
    if (cell && !(dragged && dragged.moved)) update({...cell, held: !isSame});
    dragged = null;
  });
  canvas.addEventListener('wheel', (event) => {
    const cell = cellAt(canvas, event);
    if (!cell || !(event.ctrlKey || event.shiftKey || windowOf(shown()).span < wholeOf(shown()).span)) return;
    event.preventDefault();
    (event.deltaY + event.deltaX < 0 ? zoomIn : zoomOut)(cell);
  }, {passive: false});
  canvas.addEventListener('dblclick', (event) => { const cell = cellAt(canvas, event); if (cell) zoomIn(cell); });
  canvas.addEventListener('keydown', moveCursor);
  for (const name of ['focus', 'blur']) canvas.addEventListener(name, requestRender);
}

function drag(canvas, event) {
  const {layout} = lastPlaces.get(canvas);
  const [right, down] = [event.clientX - dragged.x, event.clientY - dragged.y];
  if (Math.abs(right) + Math.abs(down) < 6) return;
  dragged.moved = true;
  Object.assign(zoom, {q: dragged.q - down / layout.cell, k: dragged.k - right / layout.cell});
  requestRender();
}

function cellTitle(canvas, {q, k}) {
  const sentence = shown();
  const head = canvas.id === 'heat' ? state.head : state.other;
  const cell = q * sentence.length + k;
  const weight = weightsOf(sentence, head, state.mask, state.temperature)[cell];
  const text = visibleOf(sentence, state.mask)[cell] ? numberText(weight, 4) : 'masked';
  return `${sentence.tokens[q]} → ${sentence.tokens[k]}: ${text}`;
}

function setUpHeatmaps() {
  for (const id of ['heat', 'heat-other']) listenToHeatmap(byId(id));
  byId('zoom-in').addEventListener('click', () => zoomIn(chosenCell()));
  byId('zoom-out').addEventListener('click', () => zoomOut(chosenCell()));
  byId('zoom-reset').addEventListener('click', () => { zoom.span = Infinity; requestRender(); });
}
