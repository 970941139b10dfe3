// Small pictures of all heads of a model, made a few rows at a time when the browser is idle. At the same time the
// page's weights are compared with heed's, which the page has for one row of each head.

const pictureSide = 40;            // pixels
const headPictures = [];           // by layer and head: {side, largest: [side, side], end}
const comparison = {rows: 0, difference: 0};

const idly = (work) => (window.requestIdleCallback ? window.requestIdleCallback(work)
  : setTimeout(() => work({timeRemaining: () => 6}), 16));

// The largest weight of each block of cells; −1 where the mask hides all of them.
class PictureMaker {
  constructor(length) {
    this.side = Math.min(length, pictureSide);
    this.largest = new Float32Array(this.side ** 2).fill(-1);
    this.rowEnds = [];
    this.column = Uint16Array.from({length}, (_, k) => Math.floor(k * this.side / length));
  }
  add(q, weights, visible) {
    const {length} = weights;
    const base = this.column[q] * this.side;
    let end = 0;
    for (let k = 0; k < length; ++k) {
      if (!visible[k]) continue;
      const pixel = base + this.column[k];
      if (weights[k] > this.largest[pixel]) this.largest[pixel] = weights[k];
      if (weights[k] > end) end = weights[k];
    }
    if (end > 0) this.rowEnds.push(end);
  }
  // The picture's data, with the end of its linear scale.
  picture() {
    const {side, largest, rowEnds} = this;
    return {side, largest, end: linearEnd(rowEnds, this.column.length)};
  }
}

function compareRow(sentence, head, weights) {
  const {length} = sentence;
  const {checkWeights} = arraysOf(sentence);
  for (let k = 0; k < length; ++k) {
    const difference = Math.abs(weights[k] - checkWeights[head * length + k]);
    if (difference > comparison.difference) comparison.difference = difference;
  }
  ++comparison.rows;
}

// Computes the pictures of one layer; yields after each row.
function* picturesOf(sentence) {
  const {length, openingMask, numHeads} = sentence;
  const visible = visibleOf(sentence, openingMask);
  const [scores, weights] = [new Float64Array(length), new Float64Array(length)];
  for (let head = 0; head < numHeads; ++head) {
    const maker = new PictureMaker(length);
    const source = sourceOf(sentence, head);
    const checkRow = sentence.query ? arraysOf(sentence).checkRow : -1;
    for (let q = 0; q < length; ++q) {
      const sees = visible.subarray(q * length, (q + 1) * length);
      fillProducts(source, q, scores, 0, openingMask.causal ? q + 1 : length);
      softmaxRow(scores, sees, 0, length, scaleOf(sentence), sentence.temperature, weights);
      maker.add(q, weights, sees);
      if (q === checkRow) compareRow(sentence, head, weights);
      yield;
    }
    headPictures[sentence.layer * numHeads + head] = maker.picture();
    drawCell(sentence.layer * numHeads + head, themeColors());
  }
}

function* allPictures() {
  for (const sentence of sentences) yield* picturesOf(sentence);
}

function agreementText() {
  if (comparison.rows === 0) return sentences[0].headDim ? '' : 'The weights were given, and are kept in half precision: to 0.0005 of each.';
  const {rows, difference} = comparison;
  return `Its weights and heed’s differ by at most ${difference.toExponential(0).replace('-', '−')} in ${rows} rows, ` +
    'one of each head.';
}

function makePictures() {
  const work = allPictures();
  const more = (deadline) => {
    let isDone = false;
    do { isDone = work.next().done; } while (!isDone && deadline.timeRemaining() > 1);
    if (!isDone) return idly(more);
    byId('agreement').textContent = agreementText();
    return undefined;
  };
  idly(more);
}
