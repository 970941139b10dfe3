// Unpacks the data that heed embedded in the page.

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

const floatsOf = (base64) => (base64 === undefined ? null : new Float32Array(bytesOf(base64).buffer));

// Expands rows of `width` for `count` tokens, by heads, to rows for all `length` tokens: the given tokens begin at
// `first`, others are 0.
function spread(rows, heads, [count, width], length, [first, wide] = [0, width]) {
  if (!rows || (count === length && width === wide)) return rows;
  const all = new Float32Array(heads * length * wide);
  for (let row = 0; row < heads * count; ++row) {
    const to = (Math.floor(row / count) * length + first + row % count) * wide;
    all.set(rows.subarray(row * width, (row + 1) * width), to);
  }
  return all;
}

// One sentence; its arrays are rows of heads of tokens: query[(head · T + token) · headDim + i]. In cross-attention the
// keys' tokens come first: tokens before firstQuery are no queries, tokens from numKeys on are no keys.
function sentenceOf(json) {
  const firstQuery = json.keys.length;
  const tokens = [...json.keys, ...json.tokens];
  const {numHeads} = json;
  const {length} = tokens;
  const numQueries = length - firstQuery;
  const numKeys = firstQuery || length;
  const sentence = {
    ...json, tokens, length, firstQuery, numQueries, numKeys,
    openingQuery: firstQuery + json.openingQuery,
    query: spread(floatsOf(json.query), numHeads, [numQueries, json.headDim], length, [firstQuery, json.headDim]),
    key: spread(floatsOf(json.key), numHeads, [numKeys, json.headDim], length),
    value: spread(floatsOf(json.value), numHeads, [numKeys, json.valueDim], length),
    weights: spread(floatsOf(json.weights), numHeads, [numQueries, numKeys], length, [firstQuery, length]),
    given: null,       // true if query q sees key k, for a mask that is neither full nor causal
    products: [],      // by head, computed on demand
    computed: [],      // weights by head, with their settings
  };
  sentence.openingMask = {causal: json.mask === 'causal', window: null, padding: 0, given: false};
  takeMask(sentence, json.mask);
  return sentence;
}

// Unpacks a mask that is neither full nor causal: one bit for each query and key.
function takeMask(sentence, {bits}) {
  if (bits === undefined) return;
  const bytes = bytesOf(bits);
  sentence.given = (q, k) => {
    const cell = q * sentence.numKeys + k;
    return (bytes[cell >> 3] >> (7 - (cell & 7))) & 1;
  };
  sentence.openingMask.given = true;
}

function headName(sentence, head) {
  const name = sentence.headNames.length ? `Head ${head} · ${sentence.headNames[head]}` : `Head ${head}`;
  return sentence.layer === undefined ? name : `Layer ${sentence.layer} · ${name}`;
}

const embedded = JSON.parse(byId('data').textContent);
const colorTables = Object.fromEntries(
  Object.entries(embedded.maps).map(([name, base64]) => [name, bytesOf(base64)]));
const sentences = embedded.model ? layersOf(embedded.model) : embedded.sentences.map(sentenceOf);
