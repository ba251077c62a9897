"""A reader of .glb files that knows the glTF 2.0 specification and nothing of this project: it evaluates a file."""
import json
import struct

import numpy as np
from scipy.spatial.transform import Rotation

KINDS = {5121: '<u1', 5123: '<u2', 5125: '<u4', 5126: '<f4'}
WIDTHS = {'SCALAR': (), 'VEC3': (3,), 'VEC4': (4,), 'MAT4': (16,)}


class Gltf:
    """A file: `json` is its document, `extras` what its scene says about itself."""

    def __init__(self, content: bytes) -> None:
        magic, version, length, size, kind = struct.unpack_from('<4sIIII', content)
        assert (magic, version, length, kind) == (b'glTF', 2, len(content), 0x4E4F534A)
        self.json = json.loads(content[20:20 + size])
        size_of_blob, kind = struct.unpack_from('<II', content, 20 + size)
        assert kind == 0x004E4942 and 28 + size + size_of_blob == length
        self.blob = content[28 + size:]
        self.extras = self.json['scenes'][self.json['scene']].get('extras', {})

    def accessor(self, number: int) -> np.ndarray:
        """(N, ...) array; matrices as (N, 4, 4) that act on columns."""
        entry = self.json['accessors'][number]
        view = self.json['bufferViews'][entry['bufferView']]
        width = WIDTHS[entry['type']]
        values = np.frombuffer(self.blob, KINDS[entry['componentType']], entry['count'] * int(np.prod(width)),
                               view.get('byteOffset', 0) + entry.get('byteOffset', 0)).reshape(-1, *width)
        if entry['type'] == 'MAT4':
            values = values.reshape(-1, 4, 4).transpose(0, 2, 1)
        return values

    def node(self, name: str) -> int:
        """The number of the node of this name."""
        return [entry.get('name') for entry in self.json['nodes']].index(name)

    @property
    def mesh_node(self) -> int:
        """The number of the first node with a mesh."""
        return next(number for number, entry in enumerate(self.json['nodes']) if 'mesh' in entry)

    def key_times(self) -> np.ndarray:
        """(N,) seconds of the key frames of the first animation."""
        return self.accessor(self.json['animations'][0]['samplers'][0]['input'])

    def nodes_at(self, time: float | None) -> list[dict]:
        """The nodes with the animation applied at a time (seconds); None: as they are in the file."""
        nodes = [dict(entry) for entry in self.json['nodes']]
        if time is not None:
            animation = self.json['animations'][0]
            for channel in animation['channels']:
                sampler = animation['samplers'][channel['sampler']]
                target = channel['target']
                assert sampler['interpolation'] == 'LINEAR'
                nodes[target['node']][target['path']] = self._sample(sampler, target['path'], time)
        return nodes

    def _sample(self, sampler: dict, path: str, time: float) -> np.ndarray:
        times = self.accessor(sampler['input'])
        values = self.accessor(sampler['output']).astype(np.float64).reshape(len(times), -1)
        right = int(np.clip(np.searchsorted(times, time), 1, len(times) - 1))
        share = np.clip((time - times[right - 1]) / (times[right] - times[right - 1]), 0, 1)
        first, second = values[right - 1], values[right]
        if path != 'rotation':
            return first + share * (second - first)
        step = Rotation.from_quat(second) * Rotation.from_quat(first).inv()
        return (Rotation.from_rotvec(step.as_rotvec() * share) * Rotation.from_quat(first)).as_quat()

    def globals_at(self, time: float | None) -> np.ndarray:
        """(N, 4, 4) transforms from each node to the scene."""
        nodes = self.nodes_at(time)
        parents = {child: parent for parent, entry in enumerate(nodes) for child in entry.get('children', [])}
        found: dict[int, np.ndarray] = {}

        def world(number: int) -> np.ndarray:
            if number not in found:
                local = np.eye(4)
                local[:3, :3] = Rotation.from_quat(nodes[number].get('rotation', [0, 0, 0, 1])).as_matrix()
                local[:3, 3] = nodes[number].get('translation', [0, 0, 0])
                assert 'scale' not in nodes[number] and 'matrix' not in nodes[number]
                found[number] = world(parents[number]) @ local if number in parents else local
            return found[number]

        return np.stack([world(number) for number in range(len(nodes))])

    def joints_at(self, time: float | None) -> dict[str, np.ndarray]:
        """{name: (3,) place in the scene} of the joints of the first skin."""
        transforms = self.globals_at(time)
        joints = self.json['skins'][0]['joints']
        return {self.json['nodes'][joint]['name']: transforms[joint][:3, 3] for joint in joints}

    def vertices_at(self, time: float | None) -> np.ndarray:
        """(V, 3) vertices of the mesh in the scene: morph targets, then skinning."""
        nodes = self.nodes_at(time)
        node = self.mesh_node
        mesh = self.json['meshes'][nodes[node]['mesh']]
        part = mesh['primitives'][0]
        points = self.accessor(part['attributes']['POSITION']).astype(np.float64)
        shares = nodes[node].get('weights', mesh.get('weights', []))
        for share, target in zip(shares, part.get('targets', []), strict=True):
            points = points + share * self.accessor(target['POSITION'])
        if 'skin' not in nodes[node]:
            transform = self.globals_at(time)[node]
            return points @ transform[:3, :3].T + transform[:3, 3]
        skin = self.json['skins'][nodes[node]['skin']]
        moves = self.globals_at(time)[skin['joints']] @ self.accessor(skin['inverseBindMatrices'])
        blend = np.zeros((len(points), 4, 4))
        for number in range(len([name for name in part['attributes'] if name.startswith('JOINTS_')])):
            joints = self.accessor(part['attributes'][f'JOINTS_{number}'])
            weights = self.accessor(part['attributes'][f'WEIGHTS_{number}'])
            blend += np.einsum('vi,vijk->vjk', weights, moves[joints])
        return np.einsum('vjk,vk->vj', blend[:, :3, :3], points) + blend[:, :3, 3]

    def faces(self) -> np.ndarray:
        """(F, 3) vertex numbers of the mesh."""
        mesh = self.json['meshes'][0]
        return self.accessor(mesh['primitives'][0]['indices']).reshape(-1, 3)
