// What the server has made of an image or video: overlay, 3-D view with its timeline, and files.

import { getFile, Gone } from './server.js';
import { Viewer } from './viewer.js';

const at = (id) => document.getElementById(id);
const NAMES = { lixel: 'lixel (as seen)', param: 'parametric (body model)' };
const SHOWN = /\.(zip|glb|obj|json|npz|mp4|webm)$/;

export class Results {
  // again: called when the server no longer has the files; computes them and resolves to whether it could.
  // failed: called with an error.
  constructor(again, failed) {
    Object.assign(this, { again, failed, answer: null, viewer: null, seconds: 0, playing: 0 });
    at('play').addEventListener('click', () => (this.playing ? this.pause() : this.play()));
    at('time').addEventListener('input', () => { this.pause(); this.seek(at('time').valueAsNumber); });
    at('clip').addEventListener('error', () => { at('clip').hidden = true; at('unplayable').hidden = false; });
  }

  get stale() { return at('results').inert; }

  // Other boxes than those of the results: still to be seen, no longer to be used.
  outdate() { at('results').inert = true; this.pause(); }

  hide() {
    this.pause();
    this.answer = null;
    at('results').hidden = true;
    delete document.body.dataset.results;
  }

  async show(answer, name) {
    this.pause();
    Object.assign(this, { answer, name: name.replace(/\.[^.]*$/, '') });
    const radios = answer.kinds.map((kind) => {
      const radio = Object.assign(document.createElement('input'), { type: 'radio', name: 'kind', value: kind });
      radio.checked = kind === answer.kinds.at(-1);
      radio.addEventListener('change', () => this.showKind(kind).catch((error) => this.regain(error, () => this.showKind(kind))));
      const label = document.createElement('label');
      label.append(radio, ` ${NAMES[kind]} `);
      return label;
    });
    at('kinds').replaceChildren(at('kinds').firstElementChild, ...radios);
    const files = ['all.zip', ...answer.files.filter((file) => SHOWN.test(file))];
    at('downloads').replaceChildren(...files.map((file) => this.link(file)));
    at('results').inert = false;
    at('results').hidden = false;
    document.body.dataset.results = 'yes';
    await this.showKind(answer.kinds.at(-1));
  }

  link(file) {
    const anchor = document.createElement('a');
    anchor.href = this.answer.folder + file;
    anchor.textContent = file === 'all.zip' ? 'all files (zip)' : file;
    anchor.addEventListener('click', (event) => {
      event.preventDefault();
      this.download(file).catch((error) => this.regain(error, () => this.download(file)));
    });
    const item = document.createElement('li');
    item.append(anchor);
    return item;
  }

  async download(file) {
    const content = await (await getFile(this.answer.folder + file)).blob();
    const address = URL.createObjectURL(content);
    const name = file === 'all.zip' ? `${this.name}.zip` : `${this.name}_${file}`;
    Object.assign(document.createElement('a'), { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
  }

  // After an error: compute once more what is gone, and then do what was wanted.
  async regain(error, wanted) {
    try {
      if (!(error instanceof Gone)) throw error;
      if (await this.again()) await wanted();
    } catch (other) {
      this.failed(other);
    }
  }

  async showKind(kind) {
    const { folder, files, people, colors } = this.answer;
    const find = (pattern) => files.filter((file) => pattern.test(file));
    const get = async (name) => (await getFile(folder + name)).arrayBuffer();
    const [image] = find(new RegExp(`^rendered_mesh_${kind}\\.jpg$`));
    const [clip] = find(new RegExp(`^rendered_mesh_${kind}\\.(mp4|webm)$`));
    at('overlay').hidden = !image;
    at('clip').hidden = !clip;
    at('unplayable').hidden = true;
    if (image) at('overlay').src = folder + image;
    if (clip) at('clip').src = folder + clip;
    const figures = find(kind === 'lixel' ? /^lixel_\d+\.glb$/ : /^person_\d+\.glb$/);
    const raw = files.includes('faces.bin');
    at('space').hidden = !figures.length && !raw; // the lixel meshes of a video
    if (at('space').hidden) { this.setLength(0); return; }
    const contents = await Promise.all(figures.map(get));
    try {
      this.viewer ??= new Viewer(at('view'));
    } catch (error) {
      at('view').textContent = `no 3-D view: this browser has no WebGL (${error.message})`;
      return;
    }
    if (figures.length) {
      this.setLength(await this.viewer.showFigures(contents));
      return;
    }
    const faces = new Uint32Array(await get('faces.bin'));
    const meshes = Array.from({ length: people }, async (_, i) => new Float32Array(await get(`mesh_${kind}_${i}.bin`)));
    this.viewer.showMeshes(await Promise.all(meshes), faces, colors);
    this.setLength(0);
  }

  setLength(seconds) {
    this.pause();
    this.seconds = seconds;
    at('timeline').hidden = !seconds;
    at('time').max = seconds;
    this.seek(0);
  }

  seek(seconds) {
    at('time').value = seconds;
    at('clock').textContent = `${seconds.toFixed(2)} s`;
    this.viewer?.seek(seconds);
    if (!at('clip').hidden && !this.playing) at('clip').currentTime = seconds;
  }

  // From the time shown, over and over. The overlay video is the clock, where there is one and the browser plays it.
  play() {
    const clip = at('clip');
    const from = at('time').valueAsNumber % this.seconds;
    let start = performance.now() - 1000 * from;
    let alone = clip.hidden;
    clip.currentTime = from;
    clip.play().catch(() => { alone = true; });
    at('play').textContent = 'pause';
    const step = (now) => {
      let seconds = alone ? Math.max(0, (now - start) / 1000) : clip.currentTime;
      if (seconds > this.seconds || (clip.ended && !alone)) {
        [start, seconds] = [now, 0];
        clip.currentTime = 0;
        if (!alone) clip.play().catch(() => { alone = true; });
      }
      this.seek(seconds);
      this.playing = requestAnimationFrame(step);
    };
    this.playing = requestAnimationFrame(step);
  }

  pause() {
    cancelAnimationFrame(this.playing);
    this.playing = 0;
    at('play').textContent = 'play';
    at('clip').pause();
  }
}
