"""Arrays and nodes of a binary glTF file (.glb), on top of pygltflib."""

import json
import struct
from types import ModuleType
from typing import Any

import numpy as np

from common.errors import optional_import

TYPES = {(): 'SCALAR', (3,): 'VEC3', (4,): 'VEC4', (4, 4): 'MAT4'}
GENERATOR = 'I2L-MeshNet in Python'


def gltf_library() -> ModuleType:
    """pygltflib. UserError: it is not installed."""
    return optional_import('pygltflib', 'writing glTF files')


class GlbBuilder:
    """A glTF document with one scene and one buffer.

    Attributes: lib: the module pygltflib; doc: its GLTF2 document, whose lists may be added to.
    """

    def __init__(self, licence: str | None = None) -> None:
        self.lib = gltf_library()
        asset = self.lib.Asset(generator=GENERATOR, copyright=licence)
        self.doc = self.lib.GLTF2(asset=asset, scene=0, scenes=[self.lib.Scene(nodes=[])])
        self._blob = bytearray()

    def array(self, values: np.ndarray, target: int | None = None, bounds: bool = False) -> int:
        """Add an array (N, ...) as an accessor and return its number.

        float32, uint8, uint16 or uint32; target: ARRAY_BUFFER or ELEMENT_ARRAY_BUFFER for what a
        mesh is made of; bounds: with the least and the largest of each component, which some uses
        have to state.
        """
        kinds = {
            'f4': self.lib.FLOAT,
            'u1': self.lib.UNSIGNED_BYTE,
            'u2': self.lib.UNSIGNED_SHORT,
            'u4': self.lib.UNSIGNED_INT,
        }
        values = np.ascontiguousarray(values)
        self._blob += bytes(-len(self._blob) % 4)
        view = self.lib.BufferView(
            buffer=0, byteOffset=len(self._blob), byteLength=values.nbytes, target=target
        )
        self._blob += values.astype(values.dtype.newbyteorder('<')).tobytes()
        self.doc.bufferViews.append(view)
        accessor = self.lib.Accessor(
            bufferView=len(self.doc.bufferViews) - 1,
            count=len(values),
            componentType=kinds[values.dtype.str[1:]],
            type=TYPES[values.shape[1:]],
        )
        if bounds:
            accessor.min = np.atleast_1d(values.min(0)).tolist()
            accessor.max = np.atleast_1d(values.max(0)).tolist()
        self.doc.accessors.append(accessor)
        return len(self.doc.accessors) - 1

    def vertices(self, values: np.ndarray, bounds: bool = False) -> int:
        """Add an array with one row for each vertex."""
        return self.array(values, self.lib.ARRAY_BUFFER, bounds)

    def faces(self, values: np.ndarray, vertex_num: int) -> int:
        """Add triangles (F, 3), as vertex numbers in a row."""
        kind = np.uint16 if vertex_num < 2**16 - 1 else np.uint32
        return self.array(values.astype(kind).reshape(-1), self.lib.ELEMENT_ARRAY_BUFFER)

    def node(self, in_scene: bool = True, **fields: Any) -> int:
        """Add a node and return its number; `in_scene`: as one of the scene's own, not as a child
        of another.
        """
        self.doc.nodes.append(self.lib.Node(**fields))
        number = len(self.doc.nodes) - 1
        if in_scene:
            self.doc.scenes[0].nodes.append(number)
        return number

    def content(self, extras: dict) -> bytes:
        """The file. extras: what its scene says about itself, plain values."""
        self._blob += bytes(-len(self._blob) % 4)
        self.doc.buffers = [self.lib.Buffer(byteLength=len(self._blob))]
        document = json.loads(self.doc.gltf_to_json())
        document['scenes'][0]['extras'] = extras  # here: pygltflib leaves out empty lists
        text = json.dumps(document, separators=(',', ':')).encode()
        text += b' ' * (-len(text) % 4)
        chunks = struct.pack('<I4s', len(text), b'JSON') + text
        chunks += struct.pack('<I4s', len(self._blob), b'BIN\0') + self._blob
        return struct.pack('<4sII', b'glTF', 2, 12 + len(chunks)) + chunks
