"""Results in the formats of other programs: glTF and BVH figures, ONNX networks."""
