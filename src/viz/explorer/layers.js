// The layers of a model. Each is a sentence with the same tokens, whose arrays are unpacked on first use.

const mostUnpacked = 4;            // layers: a few megabytes each
const mostKeptCells = 8e6;         // of products and weights, 16 bytes together
const leastKeptHeads = 4;
const unpackedLayers = [];         // {sentence, arrays}, most recently used first
const keptHeads = [];              // {sentence, head}, most recently used first

// Moves the entry that `isWanted` accepts to the front of a list, or puts the result of `create` there.
function toFront(list, isWanted, create) {
  const at = list.findIndex(isWanted);
  const [entry] = at < 0 ? [create()] : list.splice(at, 1);
  list.unshift(entry);
  return entry;
}

const halfOf = Float32Array.from({length: 1 << 16}, (_, bits) => {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const magnitude = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
  return bits & 0x8000 ? -magnitude : magnitude;
});

// Vectors of `width` floats, from floats or from integers with a scale per row.
function vectorsOf(numbers, scales, width) {
  if (scales === undefined) return floatsOf(numbers);
  const integers = new Int16Array(bytesOf(numbers).buffer);
  const factors = floatsOf(scales);
  const vectors = new Float32Array(integers.length);
  for (let row = 0, i = 0; row < factors.length; ++row) {
    for (const end = i + width; i < end; ++i) vectors[i] = factors[row] * integers[i];
  }
  return vectors;
}

function arraysOf(sentence) {
  if (unpackedLayers[0]?.sentence === sentence) return unpackedLayers[0].arrays;
  const {arrays} = toFront(unpackedLayers, (entry) => entry.sentence === sentence, () => {
    const json = JSON.parse(byId(`layer-${sentence.layer}`).textContent);
    const {headDim, valueDim} = sentence;
    const value = valueDim ? vectorsOf(json.value, json.valueScales, valueDim) : null;
    return {sentence, arrays: json.weights ? {weights: json.weights, value} : {
      query: vectorsOf(json.query, json.queryScales, headDim), key: vectorsOf(json.key, json.keyScales, headDim), value,
      checkRow: json.checkRow, checkWeights: floatsOf(json.checkWeights)}};
  });
  unpackedLayers.length = Math.min(unpackedLayers.length, mostUnpacked);
  return arrays;
}

// [T, T] of one head from stored weights: only those that the mask shows, in half precision.
function givenWeights(sentence, head) {
  const halves = new Uint16Array(bytesOf(arraysOf(sentence).weights[head]).buffer);
  const weights = new Float32Array(sentence.length ** 2);
  const visible = visibleOf(sentence, sentence.openingMask);
  for (let cell = 0, i = 0; cell < weights.length; ++cell) if (visible[cell]) weights[cell] = halfOf[halves[i++]];
  return weights;
}

function layerOf(model, about, layer) {
  const {length} = model.tokens;
  const mask = model.masks[about.mask];
  const sentence = {
    ...about, layer, title: model.title, note: model.note, tokens: model.tokens, words: model.words,
    headNames: [], numHeads: model.numHeads, length, firstQuery: 0, numQueries: length, numKeys: length,
    openingHead: model.openingHead, openingQuery: model.openingQuery, temperature: 1, dModel: 64,
    maskName: mask.name, given: null, openingMask: {causal: mask.sees === 'causal', window: null, padding: 0, given: false},
    weights: null, products: [], computed: [],
    get query() { return about.headDim ? arraysOf(sentence).query : null; },
    get key() { return about.headDim ? arraysOf(sentence).key : null; },
    get value() { return about.valueDim ? arraysOf(sentence).value : null; },
  };
  takeMask(sentence, mask.sees);
  return sentence;
}

const layersOf = (model) => model.layers.map((about, layer) => layerOf(model, about, layer));

// Drops the least recently used heads of a model: all of them would fill the memory.
function keepHead(sentence, head) {
  if (sentence.layer === undefined) return;
  toFront(keptHeads, (entry) => entry.sentence === sentence && entry.head === head, () => ({sentence, head}));
  const most = Math.max(leastKeptHeads, Math.floor(mostKeptCells / sentence.length ** 2));
  while (keptHeads.length > most) {
    const last = keptHeads.pop();
    delete last.sentence.products[last.head];
    delete last.sentence.computed[last.head];
  }
}

// Opens a head in the views below the map. The mask becomes the layer's unless the user chose another.
function openHead(layer, head) {
  const [from, to] = [shown(), sentences[layer]];
  const isLayers = maskKey(state.mask) === maskKey(from.openingMask);
  update({sentence: layer, head, ...(isLayers ? {mask: {...to.openingMask}} : {})});
}
