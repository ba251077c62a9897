// Meshes in 3-D, to be turned with the mouse.

import * as THREE from 'three';
import { OrbitControls } from './three/OrbitControls.js';

export class Viewer {
  // Throws where the browser has no WebGL.
  constructor(place) {
    this.place = place;
    this.renderer = new THREE.WebGLRenderer({ antialias: true });
    this.renderer.setPixelRatio(window.devicePixelRatio);
    place.append(this.renderer.domElement);
    this.scene = new THREE.Scene();
    this.scene.background = new THREE.Color(0xffffff);
    this.scene.add(new THREE.HemisphereLight(0xffffff, 0x777788, 1.6));
    this.camera = new THREE.PerspectiveCamera(30, 1, 0.01, 1000);
    const lamp = new THREE.DirectionalLight(0xffffff, 1.8);
    lamp.position.set(0.3, 0.5, 1);
    this.camera.add(lamp);
    this.scene.add(this.camera);
    this.people = new THREE.Group();
    this.scene.add(this.people);
    this.controls = new OrbitControls(this.camera, this.renderer.domElement);
    this.controls.addEventListener('change', () => this.render());
    new ResizeObserver(() => this.resize()).observe(place);
  }

  // meshes: Float32Arrays of vertices, metres in camera space (y down, z forward). faces: Uint32Array. colors: CSS.
  show(meshes, faces, colors) {
    for (const old of this.people.children) { old.geometry.dispose(); old.material.dispose(); }
    this.people.clear();
    meshes.forEach((vertices, index) => {
      const geometry = new THREE.BufferGeometry();
      // half a turn about x: three.js has y up, and looks along -z
      const turned = vertices.map((value, i) => (i % 3 === 0 ? value : -value));
      geometry.setAttribute('position', new THREE.BufferAttribute(turned, 3));
      geometry.setIndex(new THREE.BufferAttribute(faces, 1));
      geometry.computeVertexNormals();
      const material = new THREE.MeshStandardMaterial({ color: colors[index], roughness: 0.7, side: THREE.DoubleSide });
      this.people.add(new THREE.Mesh(geometry, material));
    });
    const sphere = new THREE.Box3().setFromObject(this.people).getBoundingSphere(new THREE.Sphere());
    this.controls.target.copy(sphere.center);
    this.camera.position.copy(sphere.center).add(new THREE.Vector3(0, 0, sphere.radius * 4));
    this.resize();
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
