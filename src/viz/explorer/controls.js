// Controls for temperature, masks, scale and theme: they change the state and show it.

// The slider's 0 … 1000 is 10^−2 … 10^2 with 1 in the middle; its ends are the limits.
const temperatureAt = (place) => (place < 2 ? 0 : place > 998 ? Infinity : 10 ** ((place - 500) / 250));
function placeOf(temperature) {
  if (temperature === 0) return 0;
  return temperature === Infinity ? 1000 : clamp(500 + 250 * Math.log10(temperature), 2, 998);
}
const triedTemperatures = [[0, '0⁺'], [0.1, '0.1'], [1, '1'], [3, '3.0'], [Infinity, '∞']];
const themes = {auto: ['◐', 'Theme: as the system'], light: ['☀', 'Theme: light'], dark: ['☾', 'Theme: dark']};

function temperatureNote(temperature) {
  if (temperature === 0) return 'The limit 0⁺: all weight on the best match (one-hot).';
  if (temperature === Infinity) return 'The limit ∞: every visible key alike (uniform).';
  if (temperature < 1) return 'Below 1: sharper than at 1.';
  return temperature > 1 ? 'Above 1: more even than at 1.' : 'weights = softmax(scores / temperature)';
}

// Sets a field, unless the user is typing into it.
function setField(element, value) {
  if (document.activeElement !== element) element.value = value;
}

function renderControls() {
  const sentence = shown();
  const {temperature, mask} = state;
  setField(byId('temperature-text'), temperature === Infinity ? '∞' : String(Number(temperature.toPrecision(4))));
  const slider = byId('temperature');
  if (temperatureAt(Number(slider.value)) !== temperature) slider.value = placeOf(temperature);
  slider.setAttribute('aria-valuetext', numberText(temperature));
  byId('temperature-note').textContent = temperatureNote(temperature);
  for (const button of byId('temperatures').children) {
    button.setAttribute('aria-pressed', String(Number(button.value) === temperature));
  }
  byId('mask-none').setAttribute('aria-pressed', String(maskKey(mask) === 'none'));
  byId('mask-causal').checked = mask.causal;
  byId('mask-window').checked = mask.window !== null;
  byId('mask-padding').checked = mask.padding > 0;
  byId('mask-given').checked = mask.given;
  byId('mask-given-box').hidden = sentence.given === null;
  byId('mask-given-name').textContent = `As computed: ${sentence.maskName}`;
  if (mask.window) {
    setField(byId('window-left'), mask.window[0]);
    setField(byId('window-right'), mask.window[1]);
  }
  if (mask.padding) setField(byId('padding-count'), mask.padding);
  byId('padding-count').max = sentence.numKeys - 1;
  byId('mask-padding').disabled = sentence.numKeys < 2;
  for (const button of byId('scales').children) button.setAttribute('aria-checked', String(button.value === state.scale));
  setRover([...byId('scales').children], Object.keys(scales).indexOf(state.scale));
  byId('sink').checked = state.hidesSink;
  byId('map').value = state.map;
  document.documentElement.dataset.theme = isDark(state) ? 'dark' : 'light';
  byId('theme').textContent = themes[state.theme][0];
  byId('theme').setAttribute('aria-label', themes[state.theme][1]);
  byId('theme').title = themes[state.theme][1];
}

function renderFigures() {
  const sentence = shown();
  const {length} = sentence;
  const weights = weightsOf(sentence, state.head, state.mask, state.temperature);
  const {q} = chosenCell();
  const entropy = entropyOf(weights, q * length, length);
  const sees = visibleOf(sentence, state.mask).subarray(q * length, (q + 1) * length).includes(1);
  byId('entropy').textContent = sees ? `${numberText(entropy)} nats` : '—';
  byId('perplexity').textContent = sees ? `${numberText(Math.exp(entropy), 2)} keys` : '—';
  byId('mean-entropy').textContent = `${numberText(meanEntropy(weights, sentence))} nats`;
}

function renderSentences() {
  const box = byId('sentences');
  if (box.children.length !== sentences.length) {
    box.replaceChildren(...sentences.map((sentence, index) => {
      const button = make('button', {type: 'button', textContent: sentence.title, dir: 'auto', title: sentence.title});
      button.setAttribute('role', 'tab');
      button.addEventListener('click', () => choose(index));
      return button;
    }));
  }
  [...box.children].forEach((button, index) => button.setAttribute('aria-selected', String(index === state.sentence)));
  setRover([...box.children], state.sentence);
  byId('note').textContent = shown().note;
}

function setMask(changes) {
  update({mask: {...state.mask, ...changes}});
}

const countOf = (id, fallback) => {
  const count = Math.round(byId(id).valueAsNumber);
  return Number.isFinite(count) && count >= 0 ? Math.min(count, 999999) : fallback;
};

function setUpMasks() {
  byId('window-left').value = 2;
  byId('window-right').value = 0;
  byId('padding-count').value = 1;
  const window = () => [countOf('window-left', 0), countOf('window-right', 0)];
  const padding = () => clamp(countOf('padding-count', 1), 1, shown().numKeys - 1);
  byId('mask-none').addEventListener('click', () => setMask({causal: false, window: null, padding: 0, given: false}));
  byId('mask-causal').addEventListener('change', (event) => setMask({causal: event.target.checked}));
  byId('mask-given').addEventListener('change', (event) => setMask({given: event.target.checked}));
  byId('mask-window').addEventListener('change', (event) => setMask({window: event.target.checked ? window() : null}));
  byId('mask-padding').addEventListener('change', (event) => setMask({padding: event.target.checked ? padding() : 0}));
  for (const id of ['window-left', 'window-right']) byId(id).addEventListener('input', () => setMask({window: window()}));
  byId('padding-count').addEventListener('input', () => { if (shown().numKeys > 1) setMask({padding: padding()}); });
}

function setUpControls() {
  const slider = byId('temperature');
  slider.addEventListener('input', () => update({temperature: temperatureAt(Number(slider.value))}));
  byId('temperature-text').addEventListener('change', (event) => {
    const temperature = parseTemperature(event.target.value);
    if (temperature !== null) update({temperature});
    else event.target.value = temperatureText(state.temperature);
  });
  byId('temperatures').append(...triedTemperatures.map(([value, text]) => {
    const button = make('button', {type: 'button', value: String(value), textContent: text});
    button.addEventListener('click', () => update({temperature: value}));
    return button;
  }));
  setUpMasks();
  byId('scales').append(...Object.entries(scales).map(([kind, text]) => {
    const button = make('button', {type: 'button', value: kind, textContent: text});
    button.setAttribute('role', 'radio');
    button.addEventListener('click', () => update({scale: kind}));
    return button;
  }));
  rove(byId('scales'), (index) => update({scale: Object.keys(scales)[index]}));
  rove(byId('sentences'), choose);
  byId('sink').addEventListener('change', (event) => update({hidesSink: event.target.checked}));
  byId('map').append(...mapNames.map((name) => make('option', {value: name, textContent: name})));
  byId('map').addEventListener('change', (event) => update({map: event.target.value}));
  const order = Object.keys(themes);
  byId('theme').addEventListener('click', () => update({theme: order[(order.indexOf(state.theme) + 1) % order.length]}));
}

// Keyboard shortcuts, active unless the user is typing.
function listenToKeys() {
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target.matches('input:not([type="range"], [type="checkbox"]), select');
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {'[': () => moveHead(-1), ']': () => moveHead(1), '+': () => zoomIn(chosenCell()), '=': () => zoomIn(chosenCell()),
      '-': () => zoomOut(chosenCell()), '0': () => { zoom.span = Infinity; requestRender(); }, Escape: () => update({held: false})};
    if (Object.hasOwn(actions, event.key)) actions[event.key]();
  });
}
