// The sinusoidal position encoding: as an image, positions across and dimensions down, and some dimensions as curves.

const positionCursor = {position: 10, dim: 8};

function positionLayout(width, height) {
  return {left: 34, top: 6, right: width - 6, bottom: height - 26};
}

function drawPositions(painter, [width, height], theme) {
  const {dModel} = shown();
  const count = state.positions;
  const {left, top, right, bottom} = positionLayout(width, height);
  const image = document.createElement('canvas');
  image.width = count;
  image.height = dModel;
  const pixels = image.getContext('2d').createImageData(count, dModel);
  const table = tableOf('RdBu');
  for (let dim = 0; dim < dModel; ++dim) {
    for (let position = 0; position < count; ++position) {
      const at = 4 * (dim * count + position);
      pixels.data.set(colorAt(table, 0.5 + 0.5 * positionValue(position, dim, dModel)), at);
      pixels.data[at + 3] = 255;
    }
  }
  image.getContext('2d').putImageData(pixels, 0, 0);
  painter.imageSmoothingEnabled = false;
  painter.drawImage(image, left, top, right - left, bottom - top);
  painter.font = fontOf(12);
  painter.fillStyle = theme.soft;
  painter.textBaseline = 'middle';
  painter.textAlign = 'right';
  painter.fillText('0', left - 6, top + 6);
  painter.fillText(String(dModel - 1), left - 6, bottom - 6);
  painter.textAlign = 'left';
  painter.fillText('position 0', left, bottom + 14);
  painter.textAlign = 'right';
  painter.fillText(String(count - 1), right, bottom + 14);
  painter.save();
  painter.translate(left - 14, (top + bottom) / 2);
  painter.rotate(-Math.PI / 2);
  painter.textAlign = 'center';
  painter.fillText('dimension', 0, 0);
  painter.restore();
  painter.strokeStyle = theme.query;
  painter.lineWidth = 2;
  const each = [(right - left) / count, (bottom - top) / dModel];
  painter.strokeRect(left + positionCursor.position * each[0], top + positionCursor.dim * each[1], Math.max(4, each[0]), Math.max(4, each[1]));
}

function drawCurves(painter, [width, height], theme) {
  const {dModel} = shown();
  const {left, top, right, bottom} = positionLayout(width, height);
  const middle = (top + bottom) / 2;
  painter.strokeStyle = theme.line;
  painter.lineWidth = 1;
  for (const y of [top, middle, bottom]) {
    painter.beginPath();
    painter.moveTo(left, y);
    painter.lineTo(right, y);
    painter.stroke();
  }
  painter.font = fontOf(12);
  painter.textBaseline = 'middle';
  painter.textAlign = 'right';
  painter.fillStyle = theme.soft;
  [['1', top], ['0', middle], ['−1', bottom]].forEach(([text, y]) => painter.fillText(text, left - 6, y));
  painter.fillText(`position ${state.positions - 1}`, right, bottom + 14);
  [[2 * state.pair, theme.key, 'sin'], [2 * state.pair + 1, theme.query, 'cos']].forEach(([dim, color, name], index) => {
    painter.strokeStyle = color;
    painter.lineWidth = 2;
    painter.beginPath();
    const points = Math.max(state.positions, 200);
    for (let i = 0; i < points; ++i) {
      const position = i * (state.positions - 1) / (points - 1);
      const x = left + (right - left) * i / (points - 1);
      const y = middle - (middle - top) * positionValue(position, dim, dModel);
      if (i) painter.lineTo(x, y); else painter.moveTo(x, y);
    }
    painter.stroke();
    painter.fillStyle = color;
    painter.textAlign = 'left';
    painter.fillText(`${name}: dimension ${dim}`, left + index * 130, bottom + 14);
  });
}

function renderPositions(theme) {
  const {dModel} = shown();
  Object.assign(positionCursor, {position: Math.min(positionCursor.position, state.positions - 1),
    dim: Math.min(positionCursor.dim, dModel - 1)});
  state.pair = Math.min(state.pair, dModel / 2 - 1);
  if (document.activeElement !== byId('position-count')) byId('position-count').value = state.positions;
  byId('position-pair').max = dModel / 2 - 1;
  byId('position-pair').value = state.pair;
  const image = canvasOf(byId('positions'));
  drawPositions(image.context, [image.width, image.height], theme);
  const curves = canvasOf(byId('curves'));
  drawCurves(curves.context, [curves.width, curves.height], theme);
  const {position, dim} = positionCursor;
  byId('position-readout').textContent =
    `Position ${position}, dimension ${dim}: ${numberText(positionValue(position, dim, dModel), 4)}`;
}

function pointAtPosition(position, dim) {
  const {dModel} = shown();
  Object.assign(positionCursor, {position: clamp(position, 0, state.positions - 1), dim: clamp(dim, 0, dModel - 1)});
  update({pair: positionCursor.dim >> 1});
}

function setUpPositions() {
  const canvas = byId('positions');
  canvas.addEventListener('pointermove', (event) => {
    const box = canvas.getBoundingClientRect();
    const {left, top, right, bottom} = positionLayout(box.width, box.height);
    const across = (event.clientX - box.left - left) / (right - left);
    const down = (event.clientY - box.top - top) / (bottom - top);
    if (across < 0 || across >= 1 || down < 0 || down >= 1) return;
    pointAtPosition(Math.floor(across * state.positions), Math.floor(down * shown().dModel));
  });
  canvas.addEventListener('keydown', (event) => {
    const steps = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]};
    if (!(event.key in steps)) return;
    event.preventDefault();
    pointAtPosition(positionCursor.position + steps[event.key][0], positionCursor.dim + steps[event.key][1]);
  });
  byId('position-count').addEventListener('input', (event) => {
    const count = Math.round(event.target.valueAsNumber);
    if (count >= 2 && count <= 512) update({positions: count});
  });
  byId('position-pair').addEventListener('input', (event) => {
    positionCursor.dim = 2 * event.target.valueAsNumber;
    update({pair: event.target.valueAsNumber});
  });
}
