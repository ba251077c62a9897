// The page: an image or video in, boxes, and what the server makes of them.

import { BoxEditor } from './boxes.js';
import { Results } from './results.js';
import { about, lines, post } from './server.js';

const at = (id) => document.getElementById(id);
const VIDEO = /\.(mp4|m4v|mov|avi|mkv|webm|mpe?g|wmv|3gp|m?ts|m2ts)$/i;
const STEPS = { waiting: 'waiting for another computation', network: 'looking at', drawing: 'drawing' };
const HINT = 'Draw a box around each, or add one; boxes can be moved and resized.';
// file: {name, body} for the server; still: the same of what is shown, an image; running: an AbortController
const state = { file: null, still: null, isVideo: false, running: null, names: ['person', 'people'], warnings: [] };
const editor = new BoxEditor(at('stage'), at('boxes'), changed);
const results = new Results(() => compute('The server no longer has these results: computing them again ...'), fail);

// kind: idle, working, done or error; also on the body, for styles and tests.
function say(text, kind = 'idle') {
  at('status').textContent = text;
  at('status').dataset.kind = document.body.dataset.state = kind;
  if (kind === 'error') at('status').scrollIntoView({ block: 'nearest' });
}

function fail(error) {
  if (error.name !== 'AbortError') say(error.message, 'error');
}

const count = (number) => `${number} ${state.names[number === 1 ? 0 : 1]}`;

function refresh() {
  const closed = !state.file || Boolean(state.running);
  ['tools', 'stage', 'boxes'].forEach((part) => { at(part).inert = closed; });
  at('focal').disabled = closed;
  at('run').disabled = closed || !editor.boxes.length;
  at('stop').hidden = at('progress').hidden = !state.running;
  at('following').hidden = !state.isVideo;
}

// Boxes or the focal length have changed: what is said and shown of former ones is over.
function changed() {
  refresh();
  if (!state.file || state.running) return;
  if (results.answer) results.outdate();
  say(results.answer ? 'Changed: compute again for new results.' : `${state.file.name}: ${count(editor.boxes.length)}. ${HINT}`);
}

// Run something that takes a while and may be stopped. Resolves to whether it came to its end.
async function working(text, task) {
  state.running?.abort();
  const control = new AbortController();
  state.running = control;
  at('progress').removeAttribute('value');
  say(text, 'working');
  refresh();
  let fine = false;
  try {
    await task(control.signal);
    fine = state.running === control;
  } catch (error) {
    if (state.running === control) { // otherwise something newer has begun
      if (error.name === 'AbortError') say('Stopped.');
      else fail(error);
    }
  }
  if (state.running === control) state.running = null;
  refresh();
  return fine;
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
  Object.assign(state, { file: null, still: null, isVideo: false });
  results.hide();
  editor.show(null);
  showWarnings([]);
  let bitmap = null;
  const isVideo = file.type.startsWith('video/') || VIDEO.test(file.name);
  const fine = await working(`reading ${file.name} ...`, async (signal) => {
    let body = file;
    if (isVideo) body = await (await post('/frame', { name: file.name, body: file }, {}, signal)).blob();
    try {
      bitmap = await createImageBitmap(body);
    } catch {
      throw new Error(`${file.name} is not an image that this browser can show`);
    }
    if (!isVideo) body = await toUpload(file, bitmap);
    signal.throwIfAborted();
    Object.assign(state, { isVideo, still: { name: file.name, body }, file: { name: file.name, body: isVideo ? file : body } });
  });
  if (!fine) return;
  editor.show(bitmap);
  say(`${file.name}: ${bitmap.width} x ${bitmap.height} pixels${isVideo ? ', first frame' : ''}. ${HINT}`);
}

function compute(text = 'computing ...') {
  const what = { boxes: editor.boxes.map((box) => box.join(',')).join(';'), focal: at('focal').value };
  if (state.isVideo && at('every').checked) what.every_frame = 'yes';
  const byKeyboard = [at('run'), document.body].includes(document.activeElement);
  return working(text, async (signal) => {
    const response = await post(state.isVideo ? '/video' : '/image', state.file, what, signal);
    const answer = state.isVideo ? await lastOf(response) : await response.json();
    signal.throwIfAborted();
    showWarnings([...answer.record.warnings, ...answer.notes]);
    await results.show(answer, state.file.name);
    signal.throwIfAborted();
    const { focal, focal_source: source } = answer.record.camera;
    say(`${count(answer.people)}, focal length ${Math.round(focal[0])} px (${source})`, 'done');
    if (byKeyboard) at('results').focus({ preventScroll: true });
    if (at('results').getBoundingClientRect().top > innerHeight / 2) at('results').scrollIntoView();
  }).then((fine) => {
    if (!fine && results.answer) results.outdate();
    return fine;
  });
}

// The answer to a video, which comes after lines about the progress.
async function lastOf(response) {
  for await (const line of lines(response)) {
    if (line.error) throw new Error(line.error);
    if (line.answer) return line.answer;
    say(line.frame ? `${STEPS[line.step]} frame ${line.frame} of ${line.frames}` : `${STEPS[line.step]} ...`, 'working');
    if (line.frame) at('progress').value = ((line.step === 'drawing') + line.frame / line.frames) / 2;
  }
  throw new Error('the server has ended in the middle of its answer');
}

function showWarnings(texts) {
  const unique = new Set([...state.warnings, ...texts]);
  at('warnings').replaceChildren(...[...unique].map((text) => Object.assign(document.createElement('p'), { textContent: text })));
}

async function find() {
  let boxes = [];
  const fine = await working(`looking for people ... ${at('finder').textContent}`, async (signal) => {
    boxes = (await (await post('/find', state.still, {}, signal)).json()).boxes;
  });
  if (!fine) return;
  editor.set(boxes);
  at('run').focus({ preventScroll: true });
  introduce();
}

// What the network is for, and what the detector costs.
async function introduce() {
  const { hands, finder, warnings } = await about();
  if (hands) state.names = ['hand', 'hands'];
  [editor.word, at('whom').textContent] = state.names;
  at('find').hidden = !finder;
  at('find').title = finder ? `by ${finder.name}` : '';
  at('finder').textContent = finder?.megabytes ? `"find people" first downloads torchvision's detector (${finder.megabytes} MB, once)` : '';
  state.warnings = warnings;
  if (!results.answer) showWarnings([]);
}

at('file').addEventListener('change', () => {
  choose(at('file').files[0]);
  at('file').value = ''; // the same file may be chosen again
});
at('find').addEventListener('click', find);
at('whole').addEventListener('click', () => editor.addWhole());
at('add').addEventListener('click', () => editor.addMiddle());
at('focal').addEventListener('input', changed);
at('every').addEventListener('change', changed);
at('run').addEventListener('click', () => compute());
at('stop').addEventListener('click', () => state.running?.abort());
document.addEventListener('dragover', (event) => { event.preventDefault(); document.body.classList.add('dropping'); });
document.addEventListener('dragleave', () => document.body.classList.remove('dropping'));
document.addEventListener('drop', (event) => {
  event.preventDefault();
  document.body.classList.remove('dropping');
  choose(event.dataTransfer.files[0]);
});
document.body.dataset.state = 'idle';
refresh();
introduce().catch(fail);
