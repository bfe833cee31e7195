"""Runs an ONNX model with onnxruntime and compares its outputs: onnx_check.py MODEL VALUES TOLERANCE.

VALUES is a safetensors file of the model's inputs and expected outputs by name. Exit codes: 0 equal, 1 different, 77 when
onnxruntime is not installed.
"""

import json
import struct
import sys

try:
    import numpy
    import onnxruntime
except ImportError:
    sys.exit(77)


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    dtypes = {"F32": "<f4", "U8": "u1", "I64": "<i8"}
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = numpy.frombuffer(data[begin:end], dtypes[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def main():
    model, values, tolerance = sys.argv[1], read_safetensors(sys.argv[2]), float(sys.argv[3])
    try:
        import onnx

        onnx.checker.check_model(onnx.load(model), full_check=True)
    except ImportError:
        pass
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    inputs = {i.name: values[i.name] for i in session.get_inputs()}
    names = [o.name for o in session.get_outputs()]
    for name, actual in zip(names, session.run(names, inputs)):
        expected = values[name]
        if actual.dtype != expected.dtype or actual.shape != expected.shape:
            sys.exit(f"{name}: {actual.dtype} {actual.shape}, not {expected.dtype} {expected.shape}")
        error = numpy.abs(actual.astype("f8") - expected.astype("f8")).max(initial=0)
        if not error <= tolerance:
            sys.exit(f"{name}: differs by {error}")


main()
