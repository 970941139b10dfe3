// The weights as a table, for screen readers and for exact numbers.

const mostColumns = 40;
const mostRows = 30;
let tableName = '';

const headerCell = (text, scope) => make('th', {scope, textContent: text, dir: 'auto'});

function weightCell(weight, isVisible) {
  return make('td', {textContent: isVisible ? numberText(weight, 4) : 'masked'});
}

function fullTable(sentence, weights, visible) {
  const {length, firstQuery, numKeys} = sentence;
  const keys = sentence.tokens.slice(0, numKeys);
  const head = make('tr', {}, headerCell('asks \\ listens to', 'col'), ...keys.map((token) => headerCell(token, 'col')));
  const rows = sentence.tokens.slice(firstQuery).map((token, row) => {
    const first = (firstQuery + row) * length;
    return make('tr', {}, headerCell(token, 'row'),
      ...keys.map((_, k) => weightCell(weights[first + k], visible[first + k])));
  });
  return [head, ...rows];
}

// The keys that one token attends to most, when the whole table would be too wide.
function rowTable(sentence, weights, visible, q) {
  const {tokens, length} = sentence;
  const keys = Array.from({length}, (_, k) => k).filter((k) => visible[q * length + k])
    .sort((a, b) => weights[q * length + b] - weights[q * length + a]).slice(0, mostRows);
  const head = make('tr', {}, headerCell('position', 'col'), headerCell('token', 'col'), headerCell('weight', 'col'));
  return [head, ...keys.map((k) => make('tr', {}, make('td', {textContent: String(k)}), headerCell(tokens[k], 'row'),
    weightCell(weights[q * length + k], true)))];
}

function renderTable() {
  if (!byId('table-box').open) return;
  const sentence = shown();
  const {q} = chosenCell();
  const isWide = sentence.length > mostColumns;
  const name = [state.sentence, sentences.length, state.head, maskKey(state.mask), state.temperature, isWide && q].join('|');
  if (name === tableName) return;
  tableName = name;
  const weights = weightsOf(sentence, state.head, state.mask, state.temperature);
  const visible = visibleOf(sentence, state.mask);
  const what = `${headName(sentence, state.head)} at temperature ${numberText(state.temperature)}, mask ${maskKey(state.mask)}`;
  const caption = isWide ? `What “${sentence.tokens[q]}” (position ${q}) attends to most. ${what}.`
    : `Rows ask, columns are listened to. ${what}.`;
  const rows = isWide ? rowTable(sentence, weights, visible, q) : fullTable(sentence, weights, visible);
  byId('table').replaceChildren(make('caption', {textContent: caption}), make('tbody', {}, ...rows));
}
