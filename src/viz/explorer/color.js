// Colours of weights, and the theme.

const scales = {linear: 'Linear', log: 'Log', row: 'Per row'};
const smallestLogWeight = 1e-4;
const manyTokens = 32;

const tableOf = (name) => colorTables[name];

function colorAt(table, position) {
  const at = 3 * Math.round(255 * clamp(position, 0, 1));
  return [table[at], table[at + 1], table[at + 2]];
}

// The 256 colours as 32-bit pixels of an image.
const wordsOf = (table) => {
  const bytes = new Uint8Array(1024).fill(255);
  for (let i = 0; i < 256; ++i) bytes.set(table.subarray(3 * i, 3 * i + 3), 4 * i);
  return new Uint32Array(bytes.buffer);
};

const cssOf = ([red, green, blue]) => `rgb(${red}, ${green}, ${blue})`;

// Black or white, whichever has more contrast by WCAG 2's relative luminance.
function textOn(color) {
  const [red, green, blue] = color.map((channel) => {
    const part = channel / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#000000' : '#ffffff';
}

// 1, 2 or 5 times a power of ten, not below the value.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((digit) => digit * power).find((end) => end >= value * 0.999999);
}

// The end of a linear scale, given the largest weights of rows. It is large enough that equal weights do not look
// strong.
const strongest = 4;        // times the weight of each key if all are equal
function linearEnd(rowEnds, length) {
  if (length <= manyTokens) return 1;
  const sorted = [...rowEnds].sort((a, b) => a - b);
  return Math.min(1, roundUp(Math.max(sorted[sorted.length >> 1] || 1, strongest / length)));
}

// Maps the weights of matrices [T, T] to positions on a colour map. A linear scale ends at 1 for few tokens, and for
// many at the typical largest weight of a row. With a scale per row, the end is the row's largest weight. A hidden sink
// is ignored.
function colorScale(kind, matrices, length, hidesSink) {
  const rowEnds = matrices.map((weights) => kept(weights, 'rowEnds', hidesSink, () => {
    const ends = new Float64Array(length);
    for (let q = 0; q < length; ++q) {
      for (let k = hidesSink ? 1 : 0; k < length; ++k) ends[q] = Math.max(ends[q], weights[q * length + k]);
    }
    return ends;
  }));
  const end = kind === 'linear' ? linearEnd(rowEnds.flatMap((ends) => [...ends]).filter((most) => most > 0), length) : 1;
  const position = {
    linear: (weight) => weight / end,
    log: (weight) => (weight > 0 ? 1 - Math.log10(weight) / Math.log10(smallestLogWeight) : 0),
    row: (weight, q, index) => (rowEnds[index][q] > 0 ? weight / rowEnds[index][q] : 0),
  }[kind];
  return {kind, end, position};
}

const systemIsDark = window.matchMedia('(prefers-color-scheme: dark)');
const isDark = (state) => (state.theme === 'auto' ? systemIsDark.matches : state.theme === 'dark');

// The present colours of the page, for canvases and exports.
let knownColors = {theme: ''};
function themeColors() {
  const {theme} = document.documentElement.dataset;
  if (knownColors.theme === theme) return knownColors;
  const style = getComputedStyle(document.documentElement);
  knownColors = Object.fromEntries(['page', 'card', 'ink', 'soft', 'line', 'faint', 'accent', 'hatch', 'hidden', 'query', 'key']
    .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  return Object.assign(knownColors, {theme});
}

const mapOf = (state) => (state.map === 'auto' ? (isDark(state) ? 'viridis' : 'Blues') : state.map);
