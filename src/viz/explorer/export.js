// Exports the current view as one picture: tokens with their arcs, heatmaps, colour bar.

const mostTokensInPicture = 60;
const matrixSize = 460;

// Draws the tokens side by side; returns their centres and the total width.
function pictureTokens(painter, {tokens, firstQuery}) {
  painter.font = fontOf(15);
  let x = 24;
  const places = tokens.map((token, index) => {
    const width = Math.max(24, painter.measureText(token).width + 16);
    if (index > 0 && index === firstQuery) x += 24;
    const place = {x, width, middle: x + width / 2};
    x += width + 6;
    return place;
  });
  return {places, width: x + 18};
}

function drawPictureTokens(painter, {places}, y, theme) {
  const sentence = shown();
  const weights = weightsOf(sentence, state.head, state.mask, state.temperature);
  const query = shownQuery();
  const scale = colorScale(state.scale, [weights], sentence.length, state.hidesSink);
  const middles = places.map(({middle}) => middle);
  painter.save();
  painter.translate(0, y);
  drawArcs(painter, arcsOf(sentence, weights, query), middles,
    {height: arcHeight, reach: [-Infinity, Infinity], theme, isFaint: query === null});
  places.forEach(({x, width, middle}, index) => {
    const isAttended = query !== null && !(state.hidesSink && index === 0);
    const weight = isAttended ? weights[query * sentence.length + index] : 0;
    const color = weight > 0 ? colorAt(tableOf(mapOf(state)), scale.position(weight, query, 0)) : null;
    painter.fillStyle = color ? cssOf(color) : theme.faint;
    painter.fillRect(x, arcHeight, width, 30);
    painter.strokeStyle = index === query ? theme.query : theme.line;
    painter.lineWidth = index === query ? 2 : 1;
    painter.strokeRect(x, arcHeight, width, 30);
    painter.fillStyle = color ? textOn(color) : theme.ink;
    painter.font = fontOf(15);
    painter.textAlign = 'center';
    painter.textBaseline = 'middle';
    painter.fillText(sentence.tokens[index], middle, arcHeight + 15);
  });
  painter.restore();
}

// Returns the size of the picture and a function that draws it.
function pictureOfView() {
  const sentence = shown();
  const heads = state.other === null ? [state.head] : [state.head, state.other];
  const hasArcs = sentence.length <= mostTokensInPicture;
  const tokens = pictureTokens(measuring, sentence);
  const width = Math.ceil(Math.max(heads.length * (matrixSize + 30) + 20, 560, hasArcs ? tokens.width : 0));
  const arcsTop = 50;
  const heatTop = hasArcs ? arcsTop + arcHeight + 62 : arcsTop + 20;
  const height = heatTop + matrixSize + 70;
  const draw = (painter, theme) => {
    painter.fillStyle = theme.card;
    painter.fillRect(0, 0, width, height);
    painter.fillStyle = theme.ink;
    painter.font = fontOf(15, 600);
    painter.textAlign = 'left';
    painter.textBaseline = 'middle';
    const caption = `${headName(sentence, state.head)} · temperature ${numberText(state.temperature)} · mask ${maskKey(state.mask)}`;
    painter.fillText(caption, 24, 28);
    if (hasArcs) drawPictureTokens(painter, tokens, arcsTop, theme);
    drawPictureMatrices(painter, heads, [width, heatTop], theme);
  };
  return {width, height, draw};
}

function drawPictureMatrices(painter, heads, [width, top], theme) {
  const sentence = shown();
  const matrices = heads.map((head) => weightsOf(sentence, head, state.mask, state.temperature));
  const scale = colorScale(state.scale, matrices, sentence.length, state.hidesSink);
  const left = (width - heads.length * (matrixSize + 30) + 30) / 2;
  heads.forEach((head, index) => {
    painter.save();
    painter.translate(left + index * (matrixSize + 30), top);
    painter.fillStyle = theme.soft;
    painter.font = fontOf(13);
    painter.textAlign = 'center';
    painter.textBaseline = 'middle';
    painter.fillText(headName(sentence, head), matrixSize / 2, -12);
    drawMatrix(painter, matrixModel(sentence, head, index, scale), matrixSize, {theme, cursor: state.held ? chosenCell() : null});
    painter.restore();
  });
  drawColorBar(painter, scale, [(width - 420) / 2, top + matrixSize + 12, 420], theme);
}

function svgOfView() {
  const theme = themeColors();
  const {width, height, draw} = pictureOfView();
  const painter = new SvgPainter(width, height, theme.hatch);
  draw(painter, theme);
  return painter.text();
}

function canvasOfView() {
  const {width, height, draw} = pictureOfView();
  const canvas = document.createElement('canvas');
  const ratio = Math.min(2, 8000 / width);
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext('2d');
  context.scale(ratio, ratio);
  draw(context, themeColors());
  return canvas;
}

function save(blob, name) {
  const link = make('a', {href: URL.createObjectURL(blob), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function setUpExport() {
  byId('save-svg').addEventListener('click', () => save(new Blob([svgOfView()], {type: 'image/svg+xml'}), 'attention.svg'));
  byId('save-png').addEventListener('click', () => canvasOfView().toBlob((blob) => save(blob, 'attention.png')));
}
