// What heed embedded in the page, unpacked.

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

const floatsOf = (base64) => (base64 === undefined ? null : new Float32Array(bytesOf(base64).buffer));

// One sentence; its arrays are rows of heads of tokens: query[(head · T + token) · headDim + i].
function sentenceOf(json) {
  const sentence = {
    ...json,
    length: json.tokens.length,
    query: floatsOf(json.query),
    key: floatsOf(json.key),
    value: floatsOf(json.value),
    weights: floatsOf(json.weights),
    given: null,       // bits of a mask that is neither full nor causal
    products: [],      // by head, once they are asked for
    computed: [],      // weights by head, with the settings they are of
  };
  sentence.openingMask = {causal: json.mask === 'causal', window: null, padding: 0, given: false};
  if (json.mask.bits !== undefined) {
    const bits = bytesOf(json.mask.bits);
    sentence.given = (cell) => (bits[cell >> 3] >> (7 - (cell & 7))) & 1;
    sentence.openingMask.given = true;
  }
  return sentence;
}

const headName = (sentence, head) =>
  sentence.headNames.length ? `Head ${head} · ${sentence.headNames[head]}` : `Head ${head}`;

const embedded = JSON.parse(byId('data').textContent);
const colorTables = Object.fromEntries(
  Object.entries(embedded.maps).map(([name, base64]) => [name, bytesOf(base64)]));
const sentences = embedded.sentences.map(sentenceOf);
