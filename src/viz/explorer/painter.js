// Draws SVG text with the interface of a canvas: the part of CanvasRenderingContext2D that the figures use.

const measuring = document.createElement('canvas').getContext('2d');
const escaped = (text) => String(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
  .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd');
const rounded = (number) => String(Math.round(number * 100) / 100);

class SvgPainter {
  constructor(width, height, hatchColor) {
    Object.assign(this, {width, height, hatchColor, parts: [], path: '', saved: [], transforms: [], hatches: 0,
      fillStyle: '#000', strokeStyle: '#000', lineWidth: 1, globalAlpha: 1, font: '12px sans-serif',
      textAlign: 'left', textBaseline: 'alphabetic'});
  }

  add(element) {
    const transform = this.transforms.join(' ');
    this.parts.push(transform ? `<g transform="${transform}">${element}</g>` : element);
  }
  opacity() { return this.globalAlpha < 1 ? ` opacity="${rounded(this.globalAlpha)}"` : ''; }

  save() {
    const {fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline} = this;
    this.saved.push({fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline,
      transforms: [...this.transforms]});
  }
  restore() { Object.assign(this, this.saved.pop()); }
  translate(x, y) { this.transforms.push(`translate(${rounded(x)} ${rounded(y)})`); }
  rotate(angle) { this.transforms.push(`rotate(${rounded(angle * 180 / Math.PI)})`); }

  beginPath() { this.path = ''; }
  moveTo(x, y) { this.path += `M${rounded(x)} ${rounded(y)}`; }
  lineTo(x, y) { this.path += `L${rounded(x)} ${rounded(y)}`; }
  bezierCurveTo(...points) { this.path += `C${points.map(rounded).join(' ')}`; }
  rect(x, y, width, height) {
    this.path += `M${rounded(x)} ${rounded(y)}h${rounded(width)}v${rounded(height)}h${rounded(-width)}z`;
  }
  stroke() {
    this.add(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" ` +
      `stroke-width="${rounded(this.lineWidth)}" stroke-linecap="round"${this.opacity()}/>`);
  }
  fill() { this.add(`<path d="${this.path}" fill="${this.fillStyle}"${this.opacity()}/>`); }
  fillRect(x, y, width, height) {
    this.add(`<rect x="${rounded(x)}" y="${rounded(y)}" width="${rounded(width)}" height="${rounded(height)}" ` +
      `fill="${this.fillStyle}"${this.opacity()}/>`);
  }
  strokeRect(x, y, width, height) {
    this.add(`<rect x="${rounded(x)}" y="${rounded(y)}" width="${rounded(width)}" height="${rounded(height)}" ` +
      `fill="none" stroke="${this.strokeStyle}" stroke-width="${rounded(this.lineWidth)}"${this.opacity()}/>`);
  }
  measureText(text) {
    measuring.font = this.font;
    return measuring.measureText(text);
  }
  fillText(text, x, y) {
    const anchor = {left: 'start', center: 'middle', right: 'end'}[this.textAlign];
    const baseline = this.textBaseline === 'middle' ? ' dominant-baseline="central"' : '';
    this.add(`<text x="${rounded(x)}" y="${rounded(y)}" fill="${this.fillStyle}" text-anchor="${anchor}"${baseline} ` +
      `style="font:${escaped(this.font)}"${this.opacity()}>${escaped(text)}</text>`);
  }
  drawImage(canvas, x, y, width, height) {
    this.add(`<image x="${rounded(x)}" y="${rounded(y)}" width="${rounded(width)}" height="${rounded(height)}" ` +
      `preserveAspectRatio="none" style="image-rendering:pixelated" href="${canvas.toDataURL('image/png')}"/>`);
  }
  hatch(rectangles) {
    this.beginPath();
    for (const rectangle of rectangles) this.rect(...rectangle);
    this.add(`<path d="${this.path}" fill="url(#hatch)"/>`);
  }
  text() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" ` +
      `viewBox="0 0 ${this.width} ${this.height}">\n<defs><pattern id="hatch" width="6" height="6" ` +
      'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0v6" ' +
      `stroke="${this.hatchColor}" stroke-width="2"/></pattern></defs>\n${this.parts.join('\n')}\n</svg>\n`;
  }
}

// Diagonal lines over rectangles [x, y, width, height] of a canvas or an SVG.
function drawHatch(painter, rectangles, color) {
  if (painter.hatch) return painter.hatch(rectangles);
  const ratio = painter.getTransform().a;
  const tile = document.createElement('canvas');
  tile.width = tile.height = Math.round(8 * ratio);
  const context = tile.getContext('2d');
  context.scale(tile.width / 8, tile.width / 8);
  context.strokeStyle = color;
  context.lineWidth = 1.2;
  context.beginPath();
  for (const shift of [-8, 0, 8]) {
    context.moveTo(shift - 1, 9);
    context.lineTo(shift + 9, -1);
  }
  context.stroke();
  const pattern = painter.createPattern(tile, 'repeat');
  pattern.setTransform(new DOMMatrix().scale(8 / tile.width));
  painter.fillStyle = pattern;
  painter.beginPath();
  for (const rectangle of rectangles) painter.rect(...rectangle);
  painter.fill();
}
