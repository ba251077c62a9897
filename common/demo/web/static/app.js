// The page: an image in, boxes, and what the server makes of them.

import { BoxCanvas } from './boxes.js';
import { Viewer } from './viewer.js';

const at = (id) => document.getElementById(id);
const state = { file: null, answer: null, viewer: null, busy: false };
const photo = new BoxCanvas(at('photo'), at('boxes'), () => refresh());

// kind: idle, working, done or error; also on the body, for styles and tests.
function say(text, kind = 'idle') {
  at('status').textContent = text;
  at('status').dataset.kind = document.body.dataset.state = kind;
}

function refresh() {
  at('run').disabled = state.busy || !state.file || !photo.boxes.length;
}

// JPEG and PNG go to the server as they are; what else the browser can show, as a PNG.
async function toUpload(file, bitmap) {
  if (['image/jpeg', 'image/png'].includes(file.type)) return file;
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  canvas.getContext('2d').drawImage(bitmap, 0, 0);
  return canvas.convertToBlob({ type: 'image/png' });
}

async function choose(file) {
  if (!file) return;
  try {
    const bitmap = await createImageBitmap(file);
    state.file = { name: file.name, body: await toUpload(file, bitmap) };
    photo.show(bitmap);
    at('results').hidden = true;
    say(`${file.name}: ${bitmap.width} x ${bitmap.height} pixels. Draw a box around each person.`);
  } catch {
    say(`${file.name} is not an image that this browser can show`, 'error');
  }
}

async function compute() {
  state.busy = true;
  refresh();
  say('computing ...', 'working');
  const query = new URLSearchParams({ name: state.file.name, boxes: photo.boxes.map((box) => box.join(',')).join(';') });
  if (at('focal').value) query.set('focal', at('focal').value);
  try {
    const response = await fetch(`/predict?${query}`, { method: 'POST', body: state.file.body });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    state.answer = answer;
    showResults();
    await showKind(answer.kinds.at(-1));
    const camera = answer.record.camera;
    say(`${answer.record.people.length} people, focal length ${Math.round(camera.focal[0])} px (${camera.focal_source})`, 'done');
  } catch (error) {
    say(error instanceof TypeError ? 'the server does not answer' : error.message, 'error');
  }
  state.busy = false;
  refresh();
}

function link(file, text) {
  const item = document.createElement('li');
  const anchor = document.createElement('a');
  anchor.href = state.answer.folder + file;
  anchor.download = `${state.file.name.replace(/\.[^.]*$/, '')}_${file}`;
  anchor.textContent = text;
  item.append(anchor);
  return item;
}

// Choices of mesh and links to files; the meshes themselves come with showKind.
function showResults() {
  const { kinds, files } = state.answer;
  at('kinds').replaceChildren(at('kinds').firstElementChild, ...kinds.map((kind) => {
    const label = document.createElement('label');
    const radio = Object.assign(document.createElement('input'), { type: 'radio', name: 'kind', value: kind });
    radio.checked = kind === kinds.at(-1);
    radio.addEventListener('change', () => showKind(kind));
    label.append(radio, kind === 'lixel' ? 'lixel (as seen) ' : 'parametric (body model) ');
    return label;
  }));
  const shown = files.filter((file) => /\.(obj|json)$/.test(file));
  at('downloads').replaceChildren(...shown.map((file) => link(file, file)));
  at('results').hidden = false;
}

async function showKind(kind) {
  const { folder, record, colors } = state.answer;
  at('overlay').src = `${folder}rendered_mesh_${kind}.jpg`;
  const get = async (name) => (await fetch(folder + name)).arrayBuffer();
  const faces = new Uint32Array(await get('faces.bin'));
  const meshes = await Promise.all(record.people.map(async (_, i) => new Float32Array(await get(`mesh_${kind}_${i}.bin`))));
  try {
    state.viewer ??= new Viewer(at('view'));
    state.viewer.show(meshes, faces, colors);
  } catch (error) {
    at('view').textContent = `no 3-D view: this browser has no WebGL (${error.message})`;
  }
}

at('file').addEventListener('change', () => choose(at('file').files[0]));
at('run').addEventListener('click', compute);
document.addEventListener('dragover', (event) => { event.preventDefault(); document.body.classList.add('dropping'); });
document.addEventListener('dragleave', () => document.body.classList.remove('dropping'));
document.addEventListener('drop', (event) => {
  event.preventDefault();
  document.body.classList.remove('dropping');
  choose(event.dataTransfer.files[0]);
});
document.body.dataset.state = 'idle';
