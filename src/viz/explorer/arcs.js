// The tokens in a row, and arcs from the query token to the keys that it attends to.

const arcHeight = 150;
const arcsPerToken = 3;       // when the rows of all tokens are shown at once
const mostDressed = 128;      // in shorter sentences all tokens are styled, visible or not
const sightMargin = 600;      // pixels
const roomyTokens = 10;       // up to this many tokens have wider gaps, which spreads their arcs
let stripSentence = null;
let stripTokens = [];
let stripLooks = [];          // the style of each token: only changes cost time
let stripPlaces = {name: '', middles: []};
let revealed = null;          // the last token that the strip scrolled to

function buildStrip(sentence) {
  stripSentence = sentence;
  revealed = null;
  stripLooks = [];
  stripPlaces = {name: '', middles: []};
  const strip = byId('strip');
  stripTokens = sentence.tokens.map((token, index) => {
    const button = make('button', {type: 'button', textContent: token, dir: 'auto', tabIndex: index ? -1 : 0});
    button.dataset.index = index;
    button.classList.toggle('first-query', index > 0 && index === sentence.firstQuery);
    button.classList.toggle('same-word', index > 0 && wordOf(sentence, index).includes(index - 1));
    return button;
  });
  strip.replaceChildren(...stripTokens);
  strip.classList.toggle('roomy', sentence.length <= roomyTokens);
}

// Scrolls to the chosen token once, if it is not visible.
function revealToken(box) {
  if (revealed === state.q) return;
  revealed = state.q;
  const token = stripTokens[state.q];
  const place = token.offsetLeft - box.scrollLeft;
  if (place < 0 || place + token.offsetWidth > box.clientWidth) {
    box.scrollLeft = token.offsetLeft - (box.clientWidth - token.offsetWidth) / 2;
  }
}

// The arcs to draw: [query, key, weight], weakest first.
function arcsOf(sentence, weights, query) {
  const {length} = sentence;
  const skipped = state.hidesSink ? 0 : -1;
  const arcs = [];
  for (let q = query ?? 0; q < (query === null ? length : query + 1); ++q) {
    const row = [];
    for (let k = 0; k < length; ++k) {
      const weight = weights[q * length + k];
      if (weight > 0.004 && k !== skipped) row.push([q, k, weight]);
    }
    row.sort((a, b) => a[2] - b[2]);
    arcs.push(...(query === null ? row.slice(-arcsPerToken) : row));
  }
  return arcs.sort((a, b) => a[2] - b[2]);
}

// Draws arcs above a line at `height`; `places` are the centres of the tokens, `reach` is the visible range.
function drawArcs(painter, arcs, places, {height, reach: [from, to], theme, isFaint}) {
  const furthest = Math.max(1, ...arcs.map(([q, k]) => Math.abs(places[q] - places[k])));
  const labels = [];
  const strongest = Math.max(...arcs.map(([, , weight]) => weight), 0.001);
  for (const [q, k, weight] of arcs) {
    const [a, b] = [places[q], places[k]];
    if (Math.max(a, b) < from || Math.min(a, b) > to) continue;
    painter.strokeStyle = theme.accent;
    painter.globalAlpha = (isFaint ? 0.55 : 1) * clamp(0.12 + 0.88 * weight / strongest, 0, 1);
    painter.lineWidth = 0.8 + 7 * weight;
    painter.beginPath();
    const top = q === k ? height - 34 : height - 26 - (height - 44) * Math.abs(a - b) / furthest;
    const control = height - 4 - (height - 4 - top) * 4 / 3;
    const lean = q === k ? 13 : 0;
    painter.moveTo(a, height - 4);
    painter.bezierCurveTo(a - lean, control, b + lean, control, b, height - 4);
    painter.stroke();
    labels.push({x: (a + b) / 2, y: top, weight});
  }
  painter.globalAlpha = 1;
  if (!isFaint) drawArcLabels(painter, labels.reverse().slice(0, 8), theme);
}

// Writes the weights on top of the strongest arcs where labels do not overlap.
function drawArcLabels(painter, labels, theme) {
  const taken = [];
  painter.font = fontOf(12, 600);
  painter.textAlign = 'center';
  painter.textBaseline = 'middle';
  for (const {x, y, weight} of labels) {
    const at = Math.max(9, y - 1);
    if (taken.some((other) => Math.abs(other.x - x) < 38 && Math.abs(other.at - at) < 17)) continue;
    taken.push({x, at});
    painter.fillStyle = theme.card;
    painter.fillRect(x - 17, at - 8, 34, 16);
    painter.fillStyle = theme.ink;
    painter.fillText(numberText(weight, 2), x, at);
  }
}

// The tokens that are styled: in a long sentence, the visible ones and a margin. Scrolling draws again.
function tokensInSight({length}) {
  if (length <= mostDressed) return () => true;
  const box = byId('strip-box');
  const middles = middlesOfTokens(box, box.clientWidth);
  return (index) => (middles[index] > -sightMargin && middles[index] < box.clientWidth + sightMargin) ||
    index === state.q || !stripLooks[index] || stripLooks[index].includes('true');
}

// The centres of the tokens, from the left edge of the box.
function middlesOfTokens(box, width) {
  const name = `${box.scrollLeft}|${width}`;
  if (stripPlaces.name !== name) {
    const start = box.getBoundingClientRect().left;
    stripPlaces = {name, middles: stripTokens.map((button) => {
      const place = button.getBoundingClientRect();
      return place.left + place.width / 2 - start;
    })};
  }
  return stripPlaces.middles;
}

function renderStrip(theme) {
  const sentence = shown();
  if (sentence.tokens !== stripSentence?.tokens) buildStrip(sentence);
  const weights = weightsOf(sentence, state.head, state.mask, state.temperature);
  const query = shownQuery();
  const cell = query === null ? null : chosenCell();
  const table = tableOf(mapOf(state));
  const scale = colorScale(state.scale, [weights], sentence.length, state.hidesSink);
  const isInSight = tokensInSight(sentence);
  stripTokens.forEach((button, index) => {
    if (!isInSight(index)) return;
    const isAttended = query !== null && !(state.hidesSink && index === 0);
    const weight = isAttended ? weights[query * sentence.length + index] : 0;
    const color = weight > 0 ? colorAt(table, scale.position(weight, query, 0)) : null;
    const isQuery = index === query;
    const isKey = cell !== null && index === cell.k;
    const isHeld = state.held && index === state.q;
    const look = [color && cssOf(color), isQuery, isKey, isHeld, index === state.q].join();
    if (stripLooks[index] === look) return;
    stripLooks[index] = look;
    button.style.backgroundColor = color ? cssOf(color) : '';
    button.style.color = color ? textOn(color) : '';
    button.classList.toggle('query', isQuery);
    button.classList.toggle('key', isKey);
    button.setAttribute('aria-pressed', String(isHeld));
    button.tabIndex = index === state.q ? 0 : -1;
  });

  const box = byId('strip-box');
  const canvas = byId('arcs');
  canvas.style.width = `${box.clientWidth}px`;
  revealToken(box);
  const {context, width} = canvasOf(canvas);
  drawArcs(context, arcsOf(sentence, weights, query), middlesOfTokens(box, width),
    {height: arcHeight, reach: [0, width], theme, isFaint: query === null});
  byId('readout').replaceChildren(...readoutOf(sentence, weights, cell));
}

function readoutOf(sentence, weights, cell) {
  if (cell === null) return ['All tokens at once. Point at one to see what it attends to.'];
  const {q, k} = cell;
  const index = q * sentence.length + k;
  const query = make('b', {textContent: sentence.tokens[q], className: 'query', dir: 'auto'});
  const key = make('b', {textContent: sentence.tokens[k], className: 'key', dir: 'auto'});
  if (!visibleOf(sentence, state.mask)[index]) return [query, ' does not see ', key, ': the mask hides it.'];
  return [query, ' attends to ', key, ` with ${numberText(weights[index], 4)}`, ...wordReadout(sentence, weights, cell), '.'];
}

// The tokens of the word that a token is part of; empty if the token is the whole word.
function wordOf({words = []}, token) {
  const word = words[token] ?? -1;
  if (word < 0) return [];
  let [first, end] = [token, token + 1];
  while (words[first - 1] === word) --first;
  while (words[end] === word) ++end;
  return end - first < 2 ? [] : Array.from({length: end - first}, (_, i) => first + i);
}

// The total weight of the word that the key is part of.
function wordReadout(sentence, weights, {q, k}) {
  const word = wordOf(sentence, k);
  if (word.length === 0) return [];
  const sum = word.reduce((all, token) => all + weights[q * sentence.length + token], 0);
  const text = word.map((token) => sentence.tokens[token].replace(/^##/, '')).join('');
  return [', and to all of ', make('b', {textContent: text, className: 'key', dir: 'auto'}), ` with ${numberText(sum, 4)}`];
}

function setUpStrip() {
  const strip = byId('strip');
  const indexOf = (event) => (event.target.dataset?.index === undefined ? null : Number(event.target.dataset.index));
  const point = (index) => {
    const isKey = state.held || (index !== null && index < shown().firstQuery);
    Object.assign(pointer, isKey ? {q: null, k: index} : {q: index, k: null});
    requestRender();
  };
  strip.addEventListener('pointerover', (event) => { if (event.pointerType === 'mouse') point(indexOf(event)); });
  strip.addEventListener('pointerleave', () => point(null));
  strip.addEventListener('click', (event) => {
    const index = indexOf(event);
    if (index === null) return;
    Object.assign(pointer, {q: null, k: null});
    if (index < shown().firstQuery) return update({k: index});
    const isSame = state.held && state.q === index;
    if (isSame) pointer.q = index;
    update({q: index, k: null, held: !isSame});
  });
  rove(strip, point);
  strip.addEventListener('focusout', () => point(null));
  byId('strip-box').addEventListener('scroll', requestRender, {passive: true});
}
