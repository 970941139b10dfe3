// The matrix of weights and its colour bar, drawn on a canvas or into an SVG.

const fontOf = (size, weight = 400) =>
  `${weight} ${size}px system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif`;
const smallestDrawnCell = 7;
const smallestCellWithValue = 27;
const largestPicture = 2048;

// The data of one matrix; `index` is its number among the matrices that share the scale.
function matrixModel(sentence, head, index, scale) {
  return {sentence, head, index, scale,
    weights: weightsOf(sentence, head, state.mask, state.temperature),
    visible: visibleOf(sentence, state.mask),
    table: tableOf(mapOf(state)), hidesSink: state.hidesSink};
}

// The whole matrix as a window: at most `span` rows and columns, with (q, k) the first cell.
function wholeOf({firstQuery, numQueries, numKeys}) {
  return {span: Math.max(numQueries, numKeys), rows: numQueries, columns: numKeys, q: firstQuery, k: 0};
}

// The window that the zoom selects, or the whole matrix.
function windowOf(sentence) {
  const whole = wholeOf(sentence);
  const span = clamp(Math.round(Math.min(zoom.span, whole.span)), Math.min(4, whole.span), whole.span);
  const [rows, columns] = [Math.min(span, whole.rows), Math.min(span, whole.columns)];
  return {span, rows, columns, q: clamp(Math.round(zoom.q), whole.q, whole.q + whole.rows - rows),
    k: clamp(Math.round(zoom.k), 0, whole.columns - columns)};
}

// The place of the plot in a box of this size, next to its labels.
function layoutOf(painter, tokens, view, size) {
  painter.font = fontOf(13);
  const widest = (from, count) =>
    Math.max(...tokens.slice(from, from + Math.min(count, 200)).map((token) => painter.measureText(token).width));
  const room = Math.min(110, size * 0.26);
  const left = Math.min(room, widest(view.q, view.rows) + 10);
  const keyWidth = Math.min(room, widest(view.k, view.columns) + 8);
  const plot = size - left - 2;
  const isUpright = keyWidth > plot / view.span;
  const top = isUpright ? Math.min(keyWidth + 4, size - 2 - plot * 0.7) : 24;
  const cell = Math.min(plot / view.columns, (size - top - 2) / view.rows);
  const width = cell * view.columns;
  // A plot that is higher than wide is centred.
  const indent = view.columns < view.rows ? (plot - width) / 2 : 0;
  return {left: left + indent, top, width, height: cell * view.rows, cell, isUpright, room: isUpright ? top - 6 : cell};
}

const hides = (model, cell, k) => !model.visible[cell] || (model.hidesSink && k === 0);

// One pixel per block of cells, coloured by its largest weight, so that strong cells remain visible.
function pictureOf(model, view, theme, pixels) {
  const {sentence: {length}, weights, scale, index, table} = model;
  const most = Math.min(Math.max(1, Math.round(pixels)), largestPicture);
  const [wide, high] = [Math.min(view.columns, most), Math.min(view.rows, most)];
  const canvas = document.createElement('canvas');
  Object.assign(canvas, {width: wide, height: high});
  const image = canvas.getContext('2d').createImageData(wide, high);
  const largest = new Float64Array(wide * high).fill(-1);
  const {visible, hidesSink} = model;
  const pixelOf = Int32Array.from({length: view.columns}, (_, column) => Math.floor(column * wide / view.columns));
  for (let row = 0; row < view.rows; ++row) {
    const q = view.q + row;
    const base = Math.floor(row * high / view.rows) * wide;
    for (let column = 0; column < view.columns; ++column) {
      const k = view.k + column;
      const cell = q * length + k;
      if (!visible[cell] || (hidesSink && k === 0)) continue;
      const pixel = base + pixelOf[column];
      const position = scale.position(weights[cell], q, index);
      if (position > largest[pixel]) largest[pixel] = position;
    }
  }
  const colors = wordsOf(table);
  const words = new Uint32Array(image.data.buffer);
  for (let pixel = 0; pixel < wide * high; ++pixel) {
    if (largest[pixel] >= 0) words[pixel] = colors[Math.round(255 * Math.min(1, largest[pixel]))];
  }
  canvas.getContext('2d').putImageData(image, 0, 0);
  return canvas;
}

// Runs of hidden cells as rectangles, row by row.
function hiddenRectangles(model, view, layout) {
  const {length} = model.sentence;
  const rectangles = [];
  for (let row = 0; row < view.rows; ++row) {
    for (let column = 0, start = -1; column <= view.columns; ++column) {
      const k = view.k + column;
      const isHidden = column < view.columns && hides(model, (view.q + row) * length + k, k);
      if (isHidden && start < 0) start = column;
      if (isHidden || start < 0) continue;
      rectangles.push([layout.left + start * layout.cell, layout.top + row * layout.cell,
        (column - start) * layout.cell, layout.cell]);
      start = -1;
    }
  }
  return rectangles;
}

function drawCells(painter, model, view, layout) {
  const {sentence: {length}, weights, scale, index, table} = model;
  const {cell, left, top} = layout;
  const gap = cell > 12 ? 1 : 0;
  painter.textAlign = 'center';
  painter.textBaseline = 'middle';
  painter.font = fontOf(clamp(cell * 0.34, 10, 14));
  for (let row = 0; row < view.rows; ++row) {
    for (let column = 0; column < view.columns; ++column) {
      const [q, k] = [view.q + row, view.k + column];
      if (hides(model, q * length + k, k)) continue;
      const weight = weights[q * length + k];
      const color = colorAt(table, scale.position(weight, q, index));
      painter.fillStyle = cssOf(color);
      painter.fillRect(left + column * cell, top + row * cell, cell - gap, cell - gap);
      if (cell < smallestCellWithValue) continue;
      painter.fillStyle = textOn(color);
      painter.fillText(cellText(weight), left + (column + 0.5) * cell - gap / 2, top + (row + 0.5) * cell);
    }
  }
}

function drawLabels(painter, model, view, layout, {theme, cursor}) {
  const {tokens} = model.sentence;
  const {cell, left, top, isUpright} = layout;
  const size = clamp(cell * 0.8, 9, 13);
  const every = Math.ceil((size + 1) / cell);
  // Labels every `every` cells, except those that the chosen label would overlap.
  const isFree = (i, first, chosen) =>
    i % every === 0 && (every === 1 || chosen === null || Math.abs(first + i - chosen) >= every);
  const style = (isChosen, color) => {
    painter.fillStyle = isChosen ? color : theme.soft;
    painter.font = fontOf(size, isChosen ? 700 : 400);
  };
  painter.textBaseline = 'middle';
  painter.textAlign = 'right';
  for (let i = 0; i < view.rows; ++i) {
    const isChosenQuery = cursor && cursor.q === view.q + i;
    if (!isChosenQuery && !isFree(i, view.q, cursor && cursor.q)) continue;
    style(isChosenQuery, theme.query);
    painter.fillText(fitText(painter, tokens[view.q + i], left - 8), left - 6, top + (i + 0.5) * cell);
  }
  for (let i = 0; i < view.columns; ++i) {
    const isChosenKey = cursor && cursor.k === view.k + i;
    if (!isChosenKey && !isFree(i, view.k, cursor && cursor.k)) continue;
    style(isChosenKey, theme.key);
    painter.save();
    painter.translate(left + (i + 0.5) * cell, top - (isUpright ? 6 : 12));
    if (isUpright) painter.rotate(-Math.PI / 2);
    painter.textAlign = isUpright ? 'left' : 'center';
    painter.fillText(fitText(painter, tokens[view.k + i], layout.room), 0, 0);
    painter.restore();
  }
}

// Draws the matrix with labels in a square of `size` at the origin. `cursor` is the framed cell, or null.
function drawMatrix(painter, model, size, {theme, cursor}) {
  const view = windowOf(model.sentence);
  const layout = layoutOf(painter, model.sentence.tokens, view, size);
  const {left, top, width, height, cell} = layout;
  const place = [...Object.values(view), model.hidesSink].join();
  const hidden = kept(model.weights, 'hidden', [place, left, top, cell].join(), () => hiddenRectangles(model, view, layout));
  painter.fillStyle = theme.hidden;
  painter.fillRect(left, top, width, height);
  drawHatch(painter, hidden, theme.hatch);
  if (cell >= smallestDrawnCell) {
    drawCells(painter, model, view, layout);
  } else {
    painter.imageSmoothingEnabled = false;
    const pixels = Math.max(width, height) * 2;
    const {kind, end} = model.scale;
    const picture = kept(model.weights, 'picture', [place, kind, end, mapOf(state), pixels].join(),
      () => pictureOf(model, view, theme, pixels));
    painter.drawImage(picture, left, top, width, height);
  }
  drawLabels(painter, model, view, layout, {theme, cursor});
  if (cursor) {
    const [x, y] = [left + (cursor.k - view.k) * cell, top + (cursor.q - view.q) * cell];
    const isInside = x >= left - 0.01 && y >= top - 0.01 && x < left + width - 0.01 && y < top + height - 0.01;
    painter.strokeStyle = theme.query;
    painter.lineWidth = 2;
    if (isInside) painter.strokeRect(x, y, Math.max(3, cell - 1), Math.max(3, cell - 1));
  }
  return {view, layout};
}

// Draws the colour bar and its labels, in a box [x, y, width] that is 46 pixels high.
function drawColorBar(painter, scale, [x, y, width], theme) {
  const table = tableOf(mapOf(state));
  const [first, last] = [x + 20, x + width - 20];
  const pieces = 128;
  for (let i = 0; i < pieces; ++i) {
    painter.fillStyle = cssOf(colorAt(table, (i + 0.5) / pieces));
    painter.fillRect(first + i * (last - first) / pieces, y + 6, (last - first) / pieces + 0.5, 10);
  }
  const labels = {
    linear: [[0, '0'], [0.5, String(Number((scale.end / 2).toPrecision(2)))],
      [1, (scale.end < 1 ? '≥ ' : '') + String(Number(scale.end.toPrecision(2)))]],
    log: [[0, '≤ 0.0001'], [0.25, '0.001'], [0.5, '0.01'], [0.75, '0.1'], [1, '1']],
    row: [[0, '0'], [1, 'row’s largest']],
  }[scale.kind];
  painter.font = fontOf(12);
  painter.fillStyle = theme.soft;
  painter.textBaseline = 'middle';
  for (const [position, label] of labels) {
    painter.textAlign = position === 1 && label.length > 6 ? 'right' : 'center';
    const shift = painter.textAlign === 'right' ? 20 : 0;
    painter.fillText(label, first + position * (last - first) + shift, y + 30);
  }
}
