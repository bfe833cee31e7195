// The safetensors container: an 8-byte little-endian header length, a JSON header, raw tensor
// bytes. The only file format of parameters and checkpoints. Matrices kept in panels are written
// row-major as [in, out], the logical shape of a dense weight (torch's Linear stores the transpose,
// [out, in]); reading gives row-major tensors in the header's order.
//
// Readers trust nothing: every count, offset and length is checked against the bytes that are there
// before anything is allocated; duplicate keys, holes, overlaps, trailing bytes, unknown fields and
// invalid UTF-8 are refused. Every fault is an Error(kCorrupt) that names the file and the byte or
// the tensor.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor_map.h"

namespace weft {

using SafetensorsMetadata = std::map<std::string, std::string>;

// One tensor of a header; begin and end are offsets into the bytes after the header.
struct SafetensorsEntry {
  std::string name;
  std::string_view dtype;  // one of the format's names, static
  Shape shape;             // at most Shape::kMaxRank dimensions
  uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the header's order
  SafetensorsMetadata metadata;
  uint64_t data_begin = 0;  // offset of the first tensor byte in the file
};

// Validates the whole container; at most 65,536 tensors. name stands for the file in messages. Time
// and memory grow with the header only.
SafetensorsHeader ParseSafetensorsHeader(std::span<const uint8_t> file, std::string_view name);

// Copies of all tensors. BOOL is read as U8; a dtype that Tensor does not have (F16, I8, ...) is
// refused with Error(kInvalidArgument) naming the tensor, and so is a file of more than 16,384
// tensors. metadata may be null.
TensorMap ParseSafetensors(std::span<const uint8_t> file, std::string_view name,
                           SafetensorsMetadata* metadata = nullptr);

// As ParseSafetensors, from a mapped file. Throws Error(kIo) when the file cannot be read.
TensorMap ReadSafetensors(const std::string& path, SafetensorsMetadata* metadata = nullptr);

// The container's bytes. Header entries are in the map's order; the data are ordered by falling
// element size, so every tensor is aligned to its element in the file. Equal maps give equal bytes.
std::string ToSafetensorsBytes(const TensorMap& tensors, const SafetensorsMetadata& metadata = {});

// Writes the file whole or not at all (base/file.h, WriteFileAtomic).
void WriteSafetensors(const std::string& path, const TensorMap& tensors,
                      const SafetensorsMetadata& metadata = {});

}  // namespace weft
