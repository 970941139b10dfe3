// Connects the parts of the page.

// The title of the browser's tab.
function nameOfPage() {
  const title = fitLetters(shown().title, 60);
  return title ? `${title} · heed` : 'heed · attention explorer';
}

function render() {
  document.title = nameOfPage();
  renderControls();
  const theme = themeColors();
  renderSentences();
  renderMap(theme);
  renderStrip(theme);
  renderHeatmaps(theme);
  renderSteps(theme);
  renderFigures();
  renderHeads(theme);
  if (!embedded.model) renderPositions(theme);
  renderTable();
}

function showAgreement() {
  if (embedded.model) return;
  const own = sentences.map(agreementOf).filter((difference) => difference !== null);
  if (own.length === 0) return;
  const largest = Math.max(...own);
  byId('agreement').textContent = largest === 0 ? 'Its weights are heed’s.' :
    `Its weights and heed’s differ by at most ${largest.toExponential(0).replace('-', '−')}.`;
}

setUpMap();
setUpStrip();
setUpHeatmaps();
setUpHeads();
setUpPositions();
setUpControls();
setUpExport();
listenToKeys();
byId('table-box').addEventListener('toggle', requestRender);
systemIsDark.addEventListener('change', requestRender);
window.addEventListener('hashchange', readFragment);
new ResizeObserver(requestRender).observe(document.body);
renderer = render;
readFragment();
render();
showAgreement();
if (embedded.model) makePictures();
setUpServer();

// For the console and for tests: the numbers behind the pictures.
window.heed = {
  state, sentences, update, openHead,
  weights: (head = state.head) => Array.from(weightsOf(shown(), head, state.mask, state.temperature)),
  svg: svgOfView,
};
