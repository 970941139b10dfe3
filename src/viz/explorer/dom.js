// Elements, canvases and numbers as text. Text from users is only set as textContent.

const byId = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// A canvas's context in CSS pixels, sharp on any screen, and its size.
function canvasOf(element) {
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  const width = Math.max(1, element.clientWidth);
  const height = Math.max(1, element.clientHeight);
  if (element.width !== Math.round(width * ratio) || element.height !== Math.round(height * ratio)) {
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
  }
  const context = element.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return {context, width, height};
}

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

// A readable number: `decimals` decimals, or a power of ten where they would show 0.
function numberText(value, decimals = 3) {
  if (value === 0) return '0';
  if (value === Infinity) return '∞';
  if (value === -Infinity) return '−∞';
  const text = Math.abs(value) < 0.5 * 10 ** -decimals ? value.toExponential(1) : value.toFixed(decimals);
  return text.replace(/-/g, '−');
}

// A short text for a matrix cell: ".71", "1".
function cellText(value) {
  const text = value.toFixed(2);
  return text === '1.00' ? '1' : text.replace(/^0/, '');
}

// Cuts text to a width; a letter is kept together with its marks.
const segmenter = typeof Intl.Segmenter === 'function' ? new Intl.Segmenter() : null;
const lettersOf = (text) => (segmenter ? Array.from(segmenter.segment(text), (part) => part.segment) : Array.from(text));

function fitLetters(text, most) {
  const letters = lettersOf(text.slice(0, 16 * most));   // with any number of marks
  return letters.length <= most ? text : letters.slice(0, most).join('') + '…';
}

function fitText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const letters = lettersOf(text);
  let count = letters.length;
  while (count > 1 && context.measureText(letters.slice(0, count).join('') + '…').width > width) --count;
  return letters.slice(0, count).join('') + '…';
}

// Arrow keys move among the buttons of a toolbar; Tab reaches only one of them.
function rove(box, choose) {
  box.addEventListener('keydown', (event) => {
    const buttons = [...box.querySelectorAll('button')];
    const at = buttons.indexOf(document.activeElement);
    const steps = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1};
    let next = at;
    if (event.key in steps) next = at + steps[event.key];
    else if (event.key === 'Home') next = 0;
    else if (event.key === 'End') next = buttons.length - 1;
    else return;
    event.preventDefault();
    if (at < 0 || next < 0 || next >= buttons.length) return;
    setRover(buttons, next);
    buttons[next].focus();
    if (choose) choose(next);
  });
}

function setRover(buttons, index) {
  buttons.forEach((button, i) => { button.tabIndex = i === index ? 0 : -1; });
}
