// The image with the boxes that are drawn on it. Boxes are [x, y, width, height] in pixels of the image.

const COLORS = ['#3b6ea5', '#d9822b', '#3a9a4b', '#c0407f', '#b59a00', '#2a8f7d', '#7d5ba6', '#9a7b2f'];
const SMALLEST = 8; // pixels on the screen: less is a click, not a box

export class BoxCanvas {
  // canvas, list: the elements for the image and for the list of boxes. changed: called with the boxes.
  constructor(canvas, list, changed) {
    Object.assign(this, { canvas, list, changed, image: null, boxes: [], start: null, end: null });
    canvas.addEventListener('pointerdown', (event) => this.down(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', () => this.up());
    canvas.addEventListener('pointercancel', () => { this.start = null; this.draw(); });
  }

  show(image) {
    const shrink = Math.min(1, 1440 / Math.max(image.width, image.height));
    this.canvas.width = Math.max(1, Math.round(image.width * shrink));
    this.canvas.height = Math.max(1, Math.round(image.height * shrink));
    Object.assign(this, { image, boxes: [], start: null });
    this.update();
  }

  // The position of a pointer in pixels of the image, kept inside it.
  position(event) {
    const area = this.canvas.getBoundingClientRect();
    const inside = (value, length) => Math.min(Math.max(value, 0), 1) * length;
    return [inside((event.clientX - area.left) / area.width, this.image.width),
      inside((event.clientY - area.top) / area.height, this.image.height)];
  }

  down(event) {
    if (!this.image || event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.start = this.end = this.position(event);
  }

  move(event) {
    if (!this.start) return;
    this.end = this.position(event);
    this.draw();
  }

  up() {
    if (!this.start) return;
    const box = this.current();
    this.start = null;
    const unit = this.image.width / this.canvas.getBoundingClientRect().width;
    if (Math.min(box[2], box[3]) >= SMALLEST * unit) this.boxes.push(box.map((value) => Math.round(value * 10) / 10));
    this.update();
  }

  current() {
    const [[a, b], [c, d]] = [this.start, this.end];
    return [Math.min(a, c), Math.min(b, d), Math.abs(a - c), Math.abs(b - d)];
  }

  update() {
    this.list.replaceChildren(...this.boxes.map((box, index) => {
      const item = document.createElement('li');
      const remove = document.createElement('button');
      remove.textContent = 'remove';
      remove.addEventListener('click', () => { this.boxes.splice(index, 1); this.update(); });
      item.append(`person ${index}: x ${box[0]}, y ${box[1]}, ${box[2]} x ${box[3]} pixels `, remove);
      return item;
    }));
    this.draw();
    this.changed(this.boxes);
  }

  draw() {
    if (!this.image) return;
    const pen = this.canvas.getContext('2d');
    const scale = this.canvas.width / this.image.width;
    pen.drawImage(this.image, 0, 0, this.canvas.width, this.canvas.height);
    pen.lineWidth = Math.max(2, this.canvas.width / 250);
    const all = this.start ? [...this.boxes, this.current()] : this.boxes;
    all.forEach((box, index) => {
      pen.strokeStyle = COLORS[index % COLORS.length];
      pen.strokeRect(...box.map((value) => value * scale));
    });
  }
}
