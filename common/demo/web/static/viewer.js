// Figures and meshes in 3-D, to be turned with the mouse, a finger or the keyboard.

import * as THREE from 'three';
import { OrbitControls } from './three/OrbitControls.js';
import { GLTFLoader } from './three/loaders/GLTFLoader.js';

const TURNS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const SAMPLES = 8; // times at which a motion is looked at, to find the place that it takes

export class Viewer {
  // Throws where the browser has no WebGL.
  constructor(place) {
    this.place = place;
    this.renderer = new THREE.WebGLRenderer({ antialias: true });
    this.renderer.setPixelRatio(window.devicePixelRatio);
    const canvas = this.renderer.domElement;
    Object.assign(canvas, { tabIndex: 0, role: 'img', ariaLabel: 'the meshes in 3-D: arrow keys turn, plus and minus come closer and go away' });
    place.append(canvas);
    this.scene = new THREE.Scene();
    this.scene.background = new THREE.Color(0xffffff);
    this.scene.add(new THREE.HemisphereLight(0xffffff, 0x777788, 1.6));
    this.camera = new THREE.PerspectiveCamera(30, 1);
    const lamp = new THREE.DirectionalLight(0xffffff, 1.8);
    lamp.position.set(0.3, 0.5, 1);
    lamp.target.position.set(0, 0, -1);
    this.camera.add(lamp, lamp.target); // both: light comes from the camera wherever that looks
    this.scene.add(this.camera);
    this.people = new THREE.Group();
    this.scene.add(this.people);
    this.mixers = [];
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.addEventListener('change', () => this.render());
    canvas.style.touchAction = 'pan-y'; // swipes up and down scroll the page, the others turn
    canvas.addEventListener('keydown', (event) => this.key(event));
    new ResizeObserver(() => this.resize()).observe(place);
  }

  // contents: ArrayBuffers of .glb files. Returns the length of their animation in seconds, 0 without one.
  async showFigures(contents) {
    const files = await Promise.all(contents.map((content) => new GLTFLoader().parseAsync(content, '')));
    this.clear();
    for (const { scene, animations } of files) {
      scene.traverse((part) => { part.frustumCulled = false; }); // the bounds of a skinned mesh are those at rest
      this.people.add(scene);
      if (!animations.length) continue;
      const mixer = new THREE.AnimationMixer(scene);
      const actions = animations.map((clip) => mixer.clipAction(clip).setLoop(THREE.LoopOnce));
      actions.forEach((action) => { action.clampWhenFinished = true; });
      this.mixers.push({ mixer, actions });
    }
    const seconds = Math.max(0, ...files.flatMap(({ animations }) => animations.map((clip) => clip.duration)));
    this.look(seconds);
    return seconds;
  }

  // meshes: Float32Arrays of vertices, metres in camera space (y down, z forward). faces: Uint32Array. colors: CSS.
  showMeshes(meshes, faces, colors) {
    this.clear();
    meshes.forEach((vertices, index) => {
      const geometry = new THREE.BufferGeometry();
      // half a turn about x: three.js has y up, and looks along -z
      const turned = vertices.map((value, i) => (i % 3 === 0 ? value : -value));
      geometry.setAttribute('position', new THREE.BufferAttribute(turned, 3));
      geometry.setIndex(new THREE.BufferAttribute(faces, 1));
      geometry.computeVertexNormals();
      this.people.add(new THREE.Mesh(geometry, new THREE.MeshStandardMaterial({ color: colors[index], roughness: 0.8 })));
    });
    this.look(0);
  }

  clear() {
    this.people.traverse((part) => { part.geometry?.dispose(); part.material?.dispose(); part.skeleton?.dispose(); });
    this.people.clear();
    this.mixers = [];
  }

  // Show the animations at a time in seconds.
  seek(seconds) {
    for (const { mixer, actions } of this.mixers) {
      actions.forEach((action) => action.reset().play());
      mixer.setTime(seconds);
    }
    this.render();
  }

  // From the front, at everything that will be seen.
  look(seconds) {
    const bounds = new THREE.Box3();
    for (let i = 0; i <= (seconds ? SAMPLES : 0); i += 1) {
      this.seek(seconds * i / SAMPLES);
      this.people.updateMatrixWorld(true);
      bounds.union(new THREE.Box3().setFromObject(this.people, true));
    }
    this.seek(0);
    const sphere = bounds.getBoundingSphere(new THREE.Sphere());
    this.controls.target.copy(sphere.center);
    this.camera.position.copy(sphere.center).add(new THREE.Vector3(0, 0, sphere.radius * 4));
    Object.assign(this.camera, { near: sphere.radius / 100, far: sphere.radius * 100 });
    this.resize();
    this.controls.update();
  }

  // A twelfth of half a turn for an arrow key, a tenth closer or farther for plus and minus.
  key(event) {
    const [right, down] = TURNS[event.key] ?? [0, 0];
    const closer = { '+': 0.9, '-': 1 / 0.9 }[event.key] ?? 1;
    if (!right && !down && closer === 1) return;
    event.preventDefault();
    const place = new THREE.Spherical().setFromVector3(this.camera.position.clone().sub(this.controls.target));
    place.theta += right * Math.PI / 12;
    place.phi += down * Math.PI / 12;
    place.radius *= closer;
    this.camera.position.setFromSpherical(place.makeSafe()).add(this.controls.target);
    this.controls.update();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.place;
    if (!width || !height) return;
    this.renderer.setSize(width, height);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    this.render();
  }

  render() {
    this.renderer.render(this.scene, this.camera);
  }
}
