// The user's choices, the renderer that depends on them, and their form in the fragment of the address.

const mapNames = ['auto', 'viridis', 'Blues', 'YlOrRd', 'Greys'];

const state = {
  sentence: 0, head: 0, other: null,    // the head next to it, or null
  q: 0, k: null, held: false,           // k null: the key with the largest weight
  temperature: 1, mask: {causal: false, window: null, padding: 0, given: false},
  scale: 'linear', hidesSink: false, map: 'auto', theme: 'auto',
  positions: 64, pair: 4,
  shows: 'pictures', score: 0, order: 'natural',   // the map of a model
};
// The cell under the pointer or the focus, which is not chosen yet.
const pointer = {q: null, k: null};
// The part of the matrix that the heatmap shows: `span` cells from (q, k).
const zoom = {q: 0, k: 0, span: Infinity};

const shown = () => sentences[state.sentence];

// The query whose row is shown, or null for all of them.
const shownQuery = () => (state.held ? state.q : pointer.q);
// The query and key whose steps are shown: the cell under the pointer, otherwise the chosen one.
function chosenCell() {
  const sentence = shown();
  const q = shownQuery() ?? state.q;
  const own = q === state.q ? state.k : null;
  const weights = weightsOf(sentence, state.head, state.mask, state.temperature);
  const skips = state.hidesSink ? 0 : -1;
  return {q, k: pointer.k ?? own ?? strongestKey(weights, q * sentence.length, sentence.length, skips)};
}

let renderer = () => {};
let isScheduled = false;
function requestRender() {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => { isScheduled = false; renderer(); });
}

let fragmentTimer = 0;
function update(changes) {
  Object.assign(state, changes);
  if ('q' in changes && !('k' in changes)) state.k = null;
  requestRender();
  clearTimeout(fragmentTimer);
  fragmentTimer = setTimeout(writeFragment, 120);
}

function choose(index) {
  const sentence = sentences[index];
  Object.assign(pointer, {q: null, k: null});
  zoom.span = Infinity;
  update({sentence: index, head: sentence.openingHead ?? 0, other: null, q: sentence.openingQuery, k: null, held: true,
    temperature: sentence.temperature, mask: {...sentence.openingMask}});
}

const temperatureText = (temperature) => (temperature === Infinity ? 'inf' : String(temperature));
function parseTemperature(text) {
  if (/^\s*(∞|inf|infinity)\s*$/i.test(text)) return Infinity;
  const value = Number(text.trim().replace(',', '.').replace('⁺', ''));
  return text.trim() !== '' && value >= 0 ? value : null;
}

function writeFragment() {
  const parts = {s: state.sentence, head: state.head, q: state.q, t: temperatureText(state.temperature),
    mask: maskKey(state.mask), scale: state.scale, map: state.map, theme: state.theme,
    positions: state.positions, pair: state.pair};
  if (state.other !== null) parts.other = state.other;
  if (state.k !== null) parts.k = state.k;
  if (!state.held) parts.held = 0;
  if (state.hidesSink) parts.sink = 'hidden';
  if (shown().asked) parts.text = shown().title;
  if (embedded.model) Object.assign(parts, {shows: state.shows, score: state.score, order: state.order});
  history.replaceState(null, '', '#' + new URLSearchParams(parts));
}

const countIn = (text, length) => (/^\d{1,9}$/.test(text ?? '') && Number(text) < length ? Number(text) : null);

function parseMask(text, sentence) {
  const mask = {causal: false, window: null, padding: 0, given: false};
  for (const part of text.split('+')) {
    const window = /^window:(\d{1,6}),(\d{1,6})$/.exec(part);
    const padding = /^padding:(\d{1,6})$/.exec(part);
    if (part === 'causal') mask.causal = true;
    else if (part === 'given') mask.given = sentence.given !== null;
    else if (window) mask.window = [Number(window[1]), Number(window[2])];
    else if (padding) mask.padding = clamp(Number(padding[1]), 0, sentence.numKeys - 1);
  }
  return mask;
}

// Applies the settings in the fragment, as far as they are valid.
function readFragment() {
  const parts = new URLSearchParams(location.hash.slice(1));
  choose(countIn(parts.get('s'), sentences.length) ?? embedded.model?.openingLayer ?? 0);
  const sentence = shown();
  const changes = {};
  const take = (name, value) => { if (value !== null && value !== undefined) changes[name] = value; };
  take('head', countIn(parts.get('head'), sentence.numHeads));
  take('other', countIn(parts.get('other'), sentence.numHeads));
  take('q', countIn(parts.get('q'), sentence.length));
  take('k', countIn(parts.get('k'), sentence.length));
  take('temperature', parts.has('t') ? parseTemperature(parts.get('t')) : null);
  if (parts.has('mask')) changes.mask = parseMask(parts.get('mask'), sentence);
  if (Object.hasOwn(scales, parts.get('scale'))) changes.scale = parts.get('scale');
  if (mapNames.includes(parts.get('map'))) changes.map = parts.get('map');
  if (['auto', 'light', 'dark'].includes(parts.get('theme'))) changes.theme = parts.get('theme');
  if (parts.get('held') === '0') changes.held = false;
  if (parts.has('sink')) changes.hidesSink = parts.get('sink') === 'hidden';
  take('positions', Math.max(2, countIn(parts.get('positions'), 513) ?? 64));
  if (Object.hasOwn(mapKinds, parts.get('shows'))) changes.shows = parts.get('shows');
  take('score', countIn(parts.get('score'), modelScores.length));
  if (['natural', 'score'].includes(parts.get('order'))) changes.order = parts.get('order');
  take('pair', countIn(parts.get('pair'), sentence.dModel / 2));
  update(changes);
}
