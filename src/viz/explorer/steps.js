// The computation of one cell, with its numbers: query · key, scale, mask, softmax, weighted values.

const mostShown = 16;      // entries of a vector

function vectorBox(numbers, name) {
  const largest = Math.max(...Array.from(numbers, Math.abs), 1e-12);
  const table = tableOf('RdBu');
  const cells = Array.from(numbers).slice(0, mostShown).map((number) => {
    const cell = make('span', {textContent: Math.abs(number) < 0.005 ? '0' : number.toFixed(2).replace('-', '−')});
    const color = colorAt(table, 0.5 + 0.42 * number / largest);
    cell.style.backgroundColor = cssOf(color);
    cell.style.color = textOn(color);
    return cell;
  });
  if (numbers.length > mostShown) cells.push(make('span', {className: 'hint', textContent: `+${numbers.length - mostShown} …`}));
  return [make('p', {className: 'formula', textContent: name}), make('div', {className: 'vector'}, ...cells)];
}

const line = (text, className = '') => make('p', {textContent: text, className});

function step(number, title, ...content) {
  return make('li', {}, make('h3', {}, make('i', {textContent: String(number)}), title), ...content);
}

const keyVectorOf = (sentence, head, k) =>
  vectorOf(sentence.key, sentence, sharedHead(head, sentence.headsPerKey), k, sentence.headDim);

// query · key for a layer that caps its scores; null if the known products are not capped.
function productOf(sentence, head, q, k) {
  if (!sentence.softcap) return null;
  const key = keyVectorOf(sentence, head, k);
  return vectorOf(sentence.query, sentence, head, q, sentence.headDim).reduce((sum, number, i) => sum + number * key[i], 0);
}

// The numbers of one cell at the present settings.
function pathOf(sentence, head, q, k) {
  const {length} = sentence;
  const first = q * length;
  const products = productsOf(sentence, head);
  const visible = visibleOf(sentence, state.mask);
  const row = new Float64Array(length);
  const [scores, sees] = [products, visible].map((cells) => cells.subarray(first, first + length));
  const {largest, sum} = softmaxRow(scores, sees, 0, length, scaleOf(sentence), state.temperature, row);
  const scaled = products[first + k] * scaleOf(sentence);
  return {product: productOf(sentence, head, q, k) ?? products[first + k], scale: scaleOf(sentence), scaled, isVisible: visible[first + k] === 1,
    visibleKeys: sees.reduce((count, one) => count + one, 0), largest, sum, weight: row[k], row};
}

function softmaxLines(path) {
  const {temperature} = state;
  if (path.visibleKeys === 0) return [line('This token sees no key: every weight is 0.')];
  if (!path.isVisible) return [line('exp(−∞) = 0')];
  if (temperature === 0) return [line(`Temperature 0⁺: the largest score, ${numberText(path.largest, 4)}, takes all.`)];
  if (temperature === Infinity) return [line(`Temperature ∞: 1 / ${path.visibleKeys} for each key it sees.`)];
  const top = Math.exp((path.scaled - path.largest) / temperature);
  return [line(`exp((${numberText(path.scaled, 4)} − ${numberText(path.largest, 4)}) / ${numberText(temperature, 3)}) = ${numberText(top, 4)}`),
    line(`divided by the row’s sum, ${numberText(path.sum, 4)}`)];
}

// Draws the row's weights on the scale of the heatmap, so that rows and heads can be compared.
function drawBars(canvas, path, chosen, end, theme) {
  const {context, width, height} = canvasOf(canvas);
  const each = width / path.row.length;
  path.row.forEach((weight, k) => {
    context.fillStyle = k === chosen ? theme.query : theme.accent;
    const tall = (height - 4) * Math.min(1, weight / end);
    context.fillRect(k * each, height - 1 - tall, Math.max(1, each - (each > 4 ? 2 : 0)), tall + 1);
  });
}

function productStep(sentence, head, q, k, path) {
  if (!sentence.query) {
    return step(1, 'The score', line('Only weights are known; the score is log(weight), right up to a constant.', 'formula'),
      line(numberText(path.product, 4), 'result'));
  }
  const {query, headDim} = sentence;
  return step(1, 'Query · key', ...vectorBox(vectorOf(query, sentence, head, q, headDim), `query of ${sentence.tokens[q]}`),
    ...vectorBox(keyVectorOf(sentence, head, k), `key of ${sentence.tokens[k]}`),
    line('multiplied and added up:', 'formula'), line(numberText(path.product, 4), 'result'));
}

function valueStep(sentence, head, q, k, path) {
  if (!sentence.value) return step(5, 'Weighted values', line('The values are not known here.', 'formula'));
  const weights = weightsOf(sentence, head, state.mask, state.temperature);
  const own = Array.from(valueVectorOf(sentence, head, k), (number) => number * path.weight);
  return step(5, 'Weighted values', ...vectorBox(own, `weight · value of ${sentence.tokens[k]}`),
    ...vectorBox(outputOf(sentence, head, weights, q), `sum over all keys: the output for ${sentence.tokens[q]}`));
}

function renderSteps(theme) {
  const sentence = shown();
  const {head} = state;
  const {q, k} = chosenCell();
  const path = pathOf(sentence, head, q, k);
  byId('steps-cell').replaceChildren(`${headName(sentence, head)}: `,
    make('b', {className: 'query', textContent: sentence.tokens[q]}), ' → ', make('b', {className: 'key', textContent: sentence.tokens[k]}));
  const bars = make('canvas', {className: 'bars'});
  bars.setAttribute('aria-hidden', 'true');
  const {end} = colorScale('linear', [weightsOf(sentence, head, state.mask, state.temperature)], sentence.length, state.hidesSink);
  byId('steps').replaceChildren(
    productStep(sentence, head, q, k, path),
    step(2, 'Scale', line(`× ${numberText(path.scale, 4)}${sentence.query ? `, by default 1/√${sentence.headDim}` : ''}`, 'formula'),
      ...(sentence.softcap ? [line(`capped: ${numberText(sentence.softcap, 1)} · tanh(score / ${numberText(sentence.softcap, 1)})`, 'formula')] : []),
      line(numberText(path.scaled, 4), 'result'),
      line('Without it long vectors would make large scores, and the softmax would pick one key.', 'hint')),
    step(3, 'Mask', line(path.isVisible ? 'The query sees this key: the score stays.' : 'Hidden from this query: the score becomes', 'formula'),
      line(path.isVisible ? numberText(path.scaled, 4) : '−∞', 'result'),
      line(`It sees ${path.visibleKeys} of ${sentence.numKeys} keys.`, 'hint')),
    step(4, 'Softmax', ...softmaxLines(path), line(numberText(path.weight, 6), 'result'), bars,
      line(`The row’s weights, from 0 to ${Number(end.toPrecision(2))}.`, 'hint')),
    valueStep(sentence, head, q, k, path));
  byId('steps').lastChild.previousSibling.querySelector('.result').id = 'steps-weight';
  drawBars(bars, path, k, end, theme);
}
