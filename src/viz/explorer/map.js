// The map of a model: a cell for each head, layers down and heads across, or sorted by a score.

const mapKinds = {pictures: 'Pictures', scores: 'Scores'};
const cellSizes = {small: 36, least: 26, most: 60, tallest: 420, sorted: 64, narrow: 760, about: 270};
let mapCells = [];          // buttons, by layer and head
let mapLook = '';           // the settings of the last layout
let mapColors = '';         // the settings of the last drawing
let mapOpen = -1;           // the cell that is marked as open
let mapPointed = null;      // the cell under the pointer
let mapShown = -1;          // the cell whose description is shown
let areCellsSmall = false;
let mapColumns = 1;

const model = embedded.model;
const cellOf = (layer, head) => layer * model.numHeads + head;
const placeOfCell = (cell) => [Math.floor(cell / model.numHeads), cell % model.numHeads];

// Scores with their range, and their place in it for bars and colours: shares of 1 have one common scale, each other
// score has its own.
const modelScores = model ? model.scores.map((score) => {
  const [least, most] = [Math.min(...score.values), Math.max(...score.values)];
  const [low, high] = least >= 0 && most <= 1 ? [0, 1] : [least, most];
  return {...score, least, most, placeOf: (value) => (value - low) / (high - low || 1)};
}) : [];

const scoreText = (value) => value.toFixed(2).replace('-', '−');

// The text in a small cell: .07, 1.0, 12.
function shortScoreText(value) {
  const size = Math.abs(value);
  const text = value.toFixed(size < 0.995 ? 2 : size < 9.95 ? 1 : 0);
  return text.replace(/^(-?)0\./, '$1.').replace('-', '−');
}

function headTitle(cell) {
  const [layer, head] = placeOfCell(cell);
  const scores = modelScores.map(({name, values}) => `${name} ${scoreText(values[cell])}`);
  return `Layer ${layer}, head ${head}: ${scores.join(' · ')}`;
}

function buildCells() {
  const {length} = model.layers;
  mapCells = Array.from({length: length * model.numHeads}, (_, cell) => {
    const [layer, head] = placeOfCell(cell);
    const text = headTitle(cell);
    const button = make('button', {type: 'button', className: 'map-cell', title: text, tabIndex: -1},
      make('canvas'), make('span', {className: 'map-score'}), make('span', {className: 'map-name', textContent: `${layer}·${head}`}));
    button.setAttribute('aria-label', text);
    button.dataset.cell = cell;
    return button;
  });
}

// Draws a head's picture into the cell's canvas, or its score on the matching colour.
function drawCell(cell, theme) {
  if (cell === mapShown) drawPicture(byId('map-preview'), headPictures[cell], theme);
  const button = mapCells[cell];
  const score = modelScores[state.score];
  const value = score.values[cell];
  button.children[1].textContent = areCellsSmall ? shortScoreText(value) : scoreText(value);
  if (state.shows === 'scores') {
    const color = colorAt(tableOf(mapOf(state)), score.placeOf(value));
    button.style.backgroundColor = cssOf(color);
    button.style.color = textOn(color);
    return;
  }
  button.style.backgroundColor = button.style.color = '';
  drawPicture(button.firstChild, headPictures[cell], theme);
}

function drawPicture(canvas, picture, theme) {
  const side = picture ? picture.side : 1;
  Object.assign(canvas, {width: side, height: side});
  const context = canvas.getContext('2d');
  context.fillStyle = theme.hidden;
  context.fillRect(0, 0, side, side);
  if (!picture) return;
  const image = context.getImageData(0, 0, side, side);
  const [colors, words] = [wordsOf(tableOf(mapOf(state))), new Uint32Array(image.data.buffer)];
  picture.largest.forEach((weight, pixel) => {
    if (weight >= 0) words[pixel] = colors[Math.round(255 * Math.min(1, weight / picture.end))];
  });
  context.putImageData(image, 0, 0);
}

// Arranges the cells in order, in as many columns as fit.
function layOutCells(width) {
  const map = byId('map-cells');
  const isSorted = state.order === 'score';
  const {least, most, tallest, sorted} = cellSizes;
  const label = 30;
  const across = (width - label) / model.numHeads;
  const size = isSorted ? sorted : Math.floor(clamp(Math.min(across, tallest / model.layers.length), least, most));
  mapColumns = isSorted ? Math.max(1, Math.floor(width / size)) : model.numHeads;
  map.style.gridTemplateColumns = isSorted ? `repeat(${mapColumns}, ${size}px)` : `${label}px repeat(${mapColumns}, ${size}px)`;
  map.style.setProperty('--cell', `${size}px`);
  map.classList.toggle('sorted', isSorted);
  areCellsSmall = size < cellSizes.small;
  map.classList.toggle('small', areCellsSmall);
  const {values} = modelScores[state.score];
  const order = mapCells.map((_, cell) => cell);
  if (isSorted) order.sort((a, b) => values[b] - values[a] || a - b);
  const name = (text, className) => make('span', {textContent: text, className: `map-label ${className}`, ariaHidden: 'true'});
  const labels = isSorted ? [] : ['', ...Array.from({length: model.numHeads}, (_, head) => String(head))]
    .map((text) => name(text, 'map-head'));
  const focused = document.activeElement;
  map.replaceChildren(...labels, ...order.flatMap((cell) => {
    const [layer, head] = placeOfCell(cell);
    return !isSorted && head === 0 ? [name(String(layer), 'map-layer'), mapCells[cell]] : [mapCells[cell]];
  }));
  if (mapCells.includes(focused)) focused.focus({preventScroll: true});
}

// The width for the map: without the text about a head, the padding and a scroll bar.
function widthOfMap() {
  const room = byId('map-columns').clientWidth;
  return (room > cellSizes.narrow ? room - cellSizes.about : room) - 22;
}

function renderMap(theme) {
  if (!model) return;
  const width = widthOfMap();
  const look = [width, state.order, state.order === 'score' && state.score].join();
  if (look !== mapLook) layOutCells(width);
  const colors = [areCellsSmall, state.shows, state.score, mapOf(state), theme.hidden].join();
  if (colors !== mapColors) mapCells.forEach((_, cell) => drawCell(cell, theme));
  [mapLook, mapColors] = [look, colors];
  byId('map-cells').classList.toggle('scores', state.shows === 'scores');
  const open = cellOf(state.sentence, state.head);
  if (open !== mapOpen) {
    mapCells.forEach((button, cell) => button.setAttribute('aria-pressed', String(cell === open)));
    if (!mapCells.includes(document.activeElement)) setRover(mapCells, open);
    mapOpen = open;
    revealCell(mapCells[open]);
  }
  renderMapSettings(open);
}

// Scrolls only the map to a cell that is not visible.
function revealCell(button) {
  const box = byId('map-box');
  const label = state.order === 'natural' ? 24 : 0;
  const place = button.offsetTop - box.scrollTop;
  if (place < label || place + button.offsetHeight > box.clientHeight) {
    box.scrollTop = button.offsetTop - (box.clientHeight - button.offsetHeight) / 2;
  }
}

// Sets a text that screen readers announce only if it changes.
function showText(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

function renderMapSettings(open) {
  const score = modelScores[state.score];
  for (const button of byId('map-kinds').children) button.setAttribute('aria-checked', String(button.value === state.shows));
  setRover([...byId('map-kinds').children], Object.keys(mapKinds).indexOf(state.shows));
  byId('map-score').value = String(state.score);
  byId('map-sorted').checked = state.order === 'score';
  showText('map-note', `${score.explanation} Here from ${scoreText(score.least)} to ${scoreText(score.most)}.` +
    (state.order === 'natural' ? ' Layers down, heads across.' : ''));
  showText('map-open', `Open: ${headName(shown(), state.head)}`);
  const focused = mapCells.indexOf(document.activeElement);
  showHead(mapPointed ?? (focused >= 0 ? focused : open));
}

// Shows the picture and scores of a head next to the map.
function showHead(cell) {
  const [layer, head] = placeOfCell(cell);
  showText('map-pointed', `Layer ${layer} · Head ${head}`);
  mapShown = cell;
  drawPicture(byId('map-preview'), headPictures[cell], themeColors());
  [...byId('map-scores').children].forEach((entry, index) => {
    const {values, placeOf} = modelScores[index];
    entry.children[1].textContent = scoreText(values[cell]);
    entry.lastChild.style.width = `${100 * placeOf(values[cell])}%`;
  });
}

function pointAtCell(button) {
  mapPointed = button ? Number(button.dataset.cell) : null;
  renderMap(themeColors());
}

function moveInMap(event) {
  const cells = [...byId('map-cells').querySelectorAll('button')];
  const at = cells.indexOf(document.activeElement);
  if (at < 0) return;
  const row = at - at % mapColumns;
  const next = {ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + mapColumns, ArrowUp: at - mapColumns,
    Home: row, End: Math.min(row + mapColumns, cells.length) - 1, PageUp: at % mapColumns,
    PageDown: cells.length - mapColumns + at % mapColumns}[event.key];
  if (next === undefined) return;
  event.preventDefault();
  if (next < 0 || next >= cells.length) return;
  setRover(cells, next);
  cells[next].focus();
}

function setUpMap() {
  if (!model) return byId('model').remove();
  for (const id of ['sentences', 'positions-card', 'heads']) byId(id).hidden = true;
  byId('model').hidden = false;
  byId('model-title').textContent = model.title;
  byId('heads-title').textContent = 'Two heads';
  buildCells();
  const cells = byId('map-cells');
  cells.addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (button) openHead(...placeOfCell(Number(button.dataset.cell)));
  });
  cells.addEventListener('keydown', moveInMap);
  for (const name of ['focusin', 'focusout']) cells.addEventListener(name, () => renderMap(themeColors()));
  cells.addEventListener('pointerover', (event) => pointAtCell(event.target.closest('button')));
  cells.addEventListener('pointerleave', () => pointAtCell(null));
  byId('map-scores').append(...modelScores.map(({name}) =>
    make('div', {}, make('dt', {textContent: name}), make('dd'), make('span', {className: 'map-bar'}))));
  byId('map-kinds').append(...Object.entries(mapKinds).map(([kind, text]) => {
    const button = make('button', {type: 'button', value: kind, textContent: text});
    button.setAttribute('role', 'radio');
    button.addEventListener('click', () => update({shows: kind}));
    return button;
  }));
  rove(byId('map-kinds'), (index) => update({shows: Object.keys(mapKinds)[index]}));
  byId('map-score').append(...modelScores.map(({name}, index) => make('option', {value: String(index), textContent: name})));
  byId('map-score').addEventListener('change', (event) => update({score: Number(event.target.value)}));
  byId('map-sorted').addEventListener('change', (event) => update({order: event.target.checked ? 'score' : 'natural'}));
  return undefined;
}
