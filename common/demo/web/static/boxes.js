// The image with boxes on it: drawn, moved and resized with the mouse, a finger or the keyboard, or typed as numbers.
// A box is [x, y, width, height] in pixels of the image.

const COLORS = ['#3b6ea5', '#d9822b', '#3a9a4b', '#c0407f', '#b59a00', '#2a8f7d', '#7d5ba6', '#9a7b2f'];
const SMALLEST = 8; // pixels on the screen: less is a click, not a box
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const round = (value) => Math.round(value * 10) / 10;
const between = (value, low, high) => Math.min(Math.max(value, low), high);

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

export class BoxEditor {
  // stage: holds the canvas and takes the boxes. list: for their numbers. changed: called after each change, of which
  // a drag is one: what it writes may shift the image.
  constructor(stage, list, changed) {
    Object.assign(this, { stage, list, canvas: stage.querySelector('canvas'), image: null, items: [], word: 'person', dragging: false });
    this.changed = () => { if (!this.dragging) changed(); };
    this.canvas.addEventListener('pointerdown', (event) => {
      if (event.pointerType !== 'touch') this.draw(event); // a finger scrolls
    });
  }

  get boxes() { return this.items.map((item) => item.box); }

  // image: an ImageBitmap, or null.
  show(image) {
    this.image = image;
    this.set([]);
    if (!image) {
      this.canvas.getContext('2d').clearRect(0, 0, this.canvas.width, this.canvas.height);
      return;
    }
    this.stage.style.setProperty('--aspect', image.width / image.height);
    const shrink = Math.min(1, 1440 / Math.max(image.width, image.height));
    this.canvas.width = Math.max(1, Math.round(image.width * shrink));
    this.canvas.height = Math.max(1, Math.round(image.height * shrink));
    this.canvas.getContext('2d').drawImage(image, 0, 0, this.canvas.width, this.canvas.height);
  }

  set(boxes) {
    this.items.forEach((item) => { item.frame.remove(); item.row.remove(); });
    this.items = [];
    boxes.forEach((box) => this.add(box));
    this.changed();
  }

  addWhole() { this.add([0, 0, this.image.width, this.image.height]); }

  // In the middle of the image; the focus goes to its grip.
  addMiddle() {
    const { width, height } = this.image;
    this.add([width / 3, height / 8, width / 3, 0.75 * height]).grip.focus({ preventScroll: true });
  }

  add(box) {
    const item = { box, row: make('li'), frame: make('div', { className: 'box' }) };
    item.grip = make('button', { type: 'button', className: 'grip', textContent: '✥' });
    item.grip.addEventListener('keydown', (event) => this.key(item, event));
    item.grip.addEventListener('pointerdown', (event) => this.drag(item, event, ([x, y, w, h], by) => this.moved(x + by[0], y + by[1], w, h)));
    item.frame.append(item.grip);
    for (const [right, low] of [[0, 0], [1, 0], [0, 1], [1, 1]]) this.addCorner(item, right, low);
    item.fields = ['x', 'y', 'width', 'height'].map((name, index) => {
      const field = make('input', { type: 'number', step: 'any' });
      field.addEventListener('input', () => {
        if (Number.isFinite(field.valueAsNumber)) this.change(item, item.box.with(index, field.valueAsNumber), field);
      });
      field.addEventListener('change', () => { if (!Number.isFinite(field.valueAsNumber)) this.change(item, item.box); });
      item.row.append(make('label', {}, `${name} `, field));
      return field;
    });
    item.title = make('strong');
    item.row.prepend(item.title);
    const remove = make('button', { type: 'button', textContent: 'remove' });
    remove.addEventListener('click', () => this.remove(item, this.canvas));
    item.row.append(remove);
    this.items.push(item);
    this.stage.append(item.frame);
    this.list.append(item.row);
    this.change(item, box);
    return item;
  }

  addCorner(item, right, low) {
    const corner = make('div', { className: 'corner' });
    Object.assign(corner.style, { left: `${100 * right}%`, top: `${100 * low}%`, cursor: right === low ? 'nwse-resize' : 'nesw-resize' });
    corner.addEventListener('pointerdown', (event) => this.drag(item, event, ([x, y, w, h], by) => {
      const { width, height } = this.image;
      const fixed = [right ? x : x + w, low ? y : y + h];
      const free = [between((right ? x + w : x) + by[0], 0, width), between((low ? y + h : y) + by[1], 0, height)];
      return spanned(fixed, free);
    }));
    item.frame.append(corner);
  }

  remove(item, focus = null) {
    item.frame.remove();
    item.row.remove();
    this.items.splice(this.items.indexOf(item), 1);
    this.items.forEach((other) => this.change(other, other.box));
    this.changed();
    focus?.focus({ preventScroll: true });
  }

  // Inside the image, as long as it fits.
  moved(x, y, w, h) {
    return [between(x, 0, Math.max(this.image.width - w, 0)), between(y, 0, Math.max(this.image.height - h, 0)), w, h];
  }

  // Arrow keys move a box by a hundredth of the image, with Shift they resize it.
  key(item, event) {
    if (event.key === 'Delete') { this.remove(item, this.canvas); return; }
    const [right, down] = ARROWS[event.key] ?? [0, 0];
    if (!right && !down) return;
    event.preventDefault();
    const step = Math.max(1, Math.max(this.image.width, this.image.height) / 100);
    const [x, y, w, h] = item.box;
    if (event.shiftKey) this.change(item, [x, y, Math.max(w + right * step, step), Math.max(h + down * step, step)]);
    else this.change(item, this.moved(x + right * step, y + down * step, w, h));
  }

  // The position of a pointer in pixels of the image.
  position(event) {
    const area = this.canvas.getBoundingClientRect();
    const place = (value, length) => between(value, 0, 1) * length;
    return [place((event.clientX - area.left) / area.width, this.image.width), place((event.clientY - area.top) / area.height, this.image.height)];
  }

  // follow(the box at the start, how far the pointer has moved since): the new box.
  drag(item, event, follow) {
    if (event.button !== 0) return;
    const handle = event.currentTarget;
    const [before, start] = [item.box, this.position(event)];
    this.dragging = true;
    handle.setPointerCapture(event.pointerId);
    handle.onpointermove = (moved) => {
      const now = this.position(moved);
      this.change(item, follow(before, [now[0] - start[0], now[1] - start[1]]));
    };
    handle.onpointerup = handle.onpointercancel = () => {
      handle.onpointermove = handle.onpointerup = handle.onpointercancel = null;
      this.dragging = false;
      this.changed();
    };
  }

  // A new box with the mouse.
  draw(event) {
    if (!this.image || event.button !== 0) return;
    const start = this.position(event);
    this.dragging = true;
    const item = this.add([...start, 0, 0]);
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.onpointermove = (moved) => this.change(item, spanned(start, this.position(moved)));
    this.canvas.onpointerup = this.canvas.onpointercancel = () => {
      this.canvas.onpointermove = this.canvas.onpointerup = this.canvas.onpointercancel = null;
      this.dragging = false;
      const unit = this.image.width / this.canvas.getBoundingClientRect().width;
      if (Math.min(item.box[2], item.box[3]) < SMALLEST * unit) this.remove(item);
      else this.changed();
    };
  }

  // from: the field in which the number was typed, which stays as it is.
  change(item, box, from = null) {
    item.box = box.map(round);
    const index = this.items.indexOf(item);
    const [x, y, w, h] = item.box;
    const { width, height } = this.image;
    const color = COLORS[index % COLORS.length];
    const part = (value, whole) => `${100 * value / whole}%`;
    Object.assign(item.frame.style, { borderColor: color, left: part(x, width), top: part(y, height), width: part(w, width), height: part(h, height) });
    item.title.textContent = `${this.word} ${index}`;
    item.title.style.color = color;
    item.grip.ariaLabel = `${this.word} ${index}: arrow keys move the box, with Shift they resize it, Delete removes it`;
    item.fields.forEach((field, i) => {
      if (field !== from) field.value = item.box[i];
      field.ariaLabel = `${this.word} ${index}: ${['x', 'y', 'width', 'height'][i]} in pixels`;
    });
    this.changed();
  }
}

function spanned([a, b], [c, d]) {
  return [Math.min(a, c), Math.min(b, d), Math.abs(a - c), Math.abs(b - d)];
}
