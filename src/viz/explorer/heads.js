// A thumbnail of every head. For long sentences one is computed per frame, once the settings have not changed for a
// while, to keep the page responsive.

const thumbnailPixels = 72;
let headsSentence = null;
let headButtons = [];
let headQueue = [];
let headsName = '';          // the settings of the last frame
let headsTimer = 0;
const rest = 120;            // milliseconds
let headNamesDrawn = [];     // the settings of each head's thumbnail

function buildHeads(sentence) {
  headsSentence = sentence;
  headNamesDrawn = [];
  // For a model, the map shows the heads instead.
  const {length} = sentence.layer === undefined ? {length: sentence.numHeads} : [];
  headButtons = Array.from({length}, (_, head) => make('button', {type: 'button', title: headName(sentence, head)},
    make('canvas', {width: thumbnailPixels, height: thumbnailPixels}),
    make('span', {textContent: `Head ${head}`}), make('span', {className: 'hint'})));
  headButtons.forEach((button, head) => button.addEventListener('click', () => update({head})));
  byId('heads').replaceChildren(...headButtons);
  byId('heads').classList.toggle('few', sentence.numHeads <= 4);
  const none = make('option', {value: '', textContent: 'no other'});
  byId('other').replaceChildren(none, ...Array.from({length: sentence.numHeads}, (_, head) =>
    make('option', {value: String(head), textContent: headName(sentence, head)})));
}

function drawThumbnail(sentence, head, theme) {
  const canvas = headButtons[head].querySelector('canvas');
  const weights = weightsOf(sentence, head, state.mask, state.temperature);
  const scale = colorScale(state.scale, [weights], sentence.length, state.hidesSink);
  const context = canvas.getContext('2d');
  context.fillStyle = theme.hidden;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingEnabled = false;
  const picture = pictureOf(matrixModel(sentence, head, 0, scale), wholeOf(sentence), theme, thumbnailPixels);
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const entropy = meanEntropy(weights, sentence);
  headButtons[head].lastChild.textContent = `${numberText(entropy, 2)} nats`;
}

function renderHeads(theme) {
  const sentence = shown();
  if (sentence !== headsSentence) buildHeads(sentence);
  headButtons.forEach((button, head) => button.setAttribute('aria-pressed', String(head === state.head)));
  if (!headButtons.includes(document.activeElement)) setRover(headButtons, state.head);
  byId('other').value = state.other === null ? '' : String(state.other);
  const name = [maskKey(state.mask), state.temperature, state.scale, state.hidesSink, mapOf(state), theme.hidden].join('|');
  headQueue = headButtons.map((_, head) => head).filter((head) => headNamesDrawn[head] !== name);
  const isLong = sentence.length > 128;
  const drawNext = () => {
    if (headsSentence !== sentence || headQueue.length === 0) return;
    const head = headQueue.shift();
    if (headNamesDrawn[head] !== name) drawThumbnail(sentence, head, theme);
    headNamesDrawn[head] = name;
  };
  if (!isLong) {
    while (headQueue.length) drawNext();
    return;
  }
  const queue = headQueue;
  const oneAFrame = () => {
    if (headQueue !== queue || queue.length === 0) return;
    drawNext();
    requestAnimationFrame(oneAFrame);
  };
  clearTimeout(headsTimer);
  headsTimer = setTimeout(() => requestAnimationFrame(oneAFrame), name === headsName ? 0 : rest);
  headsName = name;
}

function moveHead(step) {
  const {numHeads} = shown();
  if (!embedded.model) return update({head: (state.head + step + numHeads) % numHeads});
  const count = numHeads * sentences.length;
  const next = (state.sentence * numHeads + state.head + step + count) % count;
  return openHead(Math.floor(next / numHeads), next % numHeads);
}

function setUpHeads() {
  rove(byId('heads'));
  byId('other').addEventListener('change', (event) =>
    update({other: event.target.value === '' ? null : Number(event.target.value)}));
}
