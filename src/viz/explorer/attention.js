// Attention: weights = softmax(scale · query · key / temperature) over the keys that the mask shows.

// The source of the products of one head: its queries and keys, or its weights.
function sourceOf(sentence, head) {
  const {length, headDim, query, key, weights} = sentence;
  if (!query) {
    const own = weights ? weights.subarray(head * length ** 2, (head + 1) * length ** 2) : givenWeights(sentence, head);
    return {length, weights: own, temperature: sentence.temperature};
  }
  const size = length * headDim;
  const keyHead = sharedHead(head, sentence.headsPerKey);
  return {length, headDim, cap: sentence.softcap ? sentence.softcap / sentence.scale : 0,
    query: query.subarray(head * size, (head + 1) * size), key: key.subarray(keyHead * size, (keyHead + 1) * size)};
}

// Writes the products of query q and the keys before `end` to products[first …]. With capped scores, a product times
// the scale is the capped score. If only weights are known, products are their logarithms at temperature 1: the
// constant that each row lacks does not change a softmax.
function fillProducts({length, headDim, cap, query, key, weights, temperature}, q, products, first, end) {
  if (!query) {
    for (let k = 0; k < end; ++k) products[first + k] = Math.log(weights[q * length + k]) * temperature;
    return;
  }
  const row = new Float64Array(query.subarray(q * headDim, (q + 1) * headDim));
  for (let k = 0; k < end; ++k) {
    let product = 0;
    for (let i = 0, from = k * headDim; i < headDim; ++i) product += row[i] * key[from + i];
    products[first + k] = cap ? cap * Math.tanh(product / cap) : product;
  }
}

// The products of one head, [T, T] for all T tokens.
function productsOf(sentence, head) {
  if (sentence.products[head]) return sentence.products[head];
  const {length} = sentence;
  const products = new Float64Array(length * length);
  const source = sourceOf(sentence, head);
  for (let q = 0; q < length; ++q) fillProducts(source, q, products, q * length, length);
  return (sentence.products[head] = products);
}

const scaleOf = (sentence) => (sentence.query ? sentence.scale : 1);

const maskKey = (mask) => [mask.causal && 'causal', mask.window && `window:${mask.window}`,
  mask.padding > 0 && `padding:${mask.padding}`, mask.given && 'given'].filter(Boolean).join('+') || 'none';

// The keys that each query sees, [T, T] of 0 and 1. All active masks must allow a key.
function visibleOf(sentence, mask) {
  const name = maskKey(mask);
  if (sentence.visibleName === name) return sentence.visible;
  const {length, firstQuery, numQueries, numKeys} = sentence;
  const visible = new Uint8Array(length * length);
  let numVisible = 0;
  const [left, right] = mask.window || [Infinity, Infinity];
  for (let q = 0; q < numQueries; ++q) {
    for (let k = 0; k < numKeys; ++k) {
      const sees = (!mask.causal || k <= q) && q - k <= left && k - q <= right &&
        k < numKeys - mask.padding && (!mask.given || !sentence.given || sentence.given(q, k)) ? 1 : 0;
      visible[(firstQuery + q) * length + k] = sees;
      numVisible += sees;
    }
  }
  Object.assign(sentence, {visibleName: name, numVisible});
  return (sentence.visible = visible);
}

// The softmax of scores[first …] where `visible`, into weights[first …]. The largest score is subtracted first, so that
// nothing overflows. Temperature 0 gives the limit, equal weights for the largest scores, and Infinity equal weights
// for all visible keys. A row that sees nothing is 0.
function softmaxRow(scores, visible, first, length, factor, temperature, weights) {
  let largest = -Infinity;
  for (let i = first; i < first + length; ++i) {
    if (visible[i]) largest = Math.max(largest, factor * scores[i]);
  }
  let sum = 0;
  for (let i = first; i < first + length; ++i) {
    const score = factor * scores[i];
    let power = 0;
    if (visible[i] && score > -Infinity) {
      if (temperature === 0) power = score === largest ? 1 : 0;
      else power = Math.exp((score - largest) / temperature);
    }
    weights[i] = power;
    sum += power;
  }
  if (sum > 0) for (let i = first; i < first + length; ++i) weights[i] /= sum;
  return {largest, sum};
}

// Caches a value that follows from weights until their settings or `settings` change; most frames change neither.
function kept(weights, slot, settings, compute) {
  const name = `${weights.settings}|${settings}`;
  if (!weights[slot] || weights[slot].name !== name) weights[slot] = {name, value: compute()};
  return weights[slot].value;
}

// [T, T] of one head at the given settings; the last result is cached.
function weightsOf(sentence, head, mask, temperature) {
  const name = `${maskKey(mask)}@${temperature}`;
  keepHead(sentence, head);
  const known = sentence.computed[head];
  if (known && known.name === name) return known.weights;
  const {length} = sentence;
  const weights = known ? known.weights : new Float64Array(length * length);
  const products = productsOf(sentence, head);
  const visible = visibleOf(sentence, mask);
  for (let q = 0; q < length; ++q) {
    softmaxRow(products, visible, q * length, length, scaleOf(sentence), temperature, weights);
  }
  sentence.computed[head] = {name, weights};
  weights.settings = name;
  return weights;
}

// −Σ w ln w of one row, in nats.
function entropyOf(weights, first, length) {
  let entropy = 0;
  for (let i = first; i < first + length; ++i) if (weights[i] > 0) entropy -= weights[i] * Math.log(weights[i]);
  return entropy;
}

function meanEntropy(weights, {length, firstQuery, numQueries}) {
  return kept(weights, 'meanEntropy', '', () => {
    let sum = 0;
    for (let q = firstQuery; q < length; ++q) sum += entropyOf(weights, q * length, length);
    return sum / numQueries;
  });
}

// The key with the largest weight of a row, except the key `skips`.
function strongestKey(weights, first, length, skips = -1) {
  let best = skips === 0 && length > 1 ? 1 : 0;
  for (let k = best + 1; k < length; ++k) if (k !== skips && weights[first + k] > weights[first + best]) best = k;
  return best;
}

// The key or value head that a head reads, when several heads share one.
const sharedHead = (head, sharing) => Math.floor(head / (sharing ?? 1));

const vectorOf = (array, sentence, head, token, width) =>
  array.subarray((head * sentence.length + token) * width, (head * sentence.length + token + 1) * width);

const valueVectorOf = (sentence, head, k) =>
  vectorOf(sentence.value, sentence, sharedHead(head, sentence.headsPerValue), k, sentence.valueDim);

// Σ w · value over the keys: the output of this head for the query.
function outputOf(sentence, head, weights, q) {
  const {length, valueDim} = sentence;
  const output = new Float64Array(valueDim);
  for (let k = 0; k < length; ++k) {
    const weight = weights[q * length + k];
    if (weight > 0) valueVectorOf(sentence, head, k).forEach((number, i) => { output[i] += weight * number; });
  }
  return output;
}

// The largest difference between heed's weights and the page's at heed's settings, or null.
function agreementOf(sentence) {
  if (!sentence.weights || !sentence.query) return null;
  const size = sentence.length ** 2;
  let largest = 0;
  for (let head = 0; head < sentence.numHeads; ++head) {
    const weights = weightsOf(sentence, head, sentence.openingMask, sentence.temperature);
    for (let i = 0; i < size; ++i) largest = Math.max(largest, Math.abs(weights[i] - sentence.weights[head * size + i]));
  }
  return largest;
}

// PE(position, 2i) = sin(position / 10000^(2i / dModel)), PE(position, 2i + 1) the cosine of the same.
function positionValue(position, dim, dModel) {
  const angle = position / 10000 ** ((dim - (dim % 2)) / dModel);
  return dim % 2 ? Math.cos(angle) : Math.sin(angle);
}
