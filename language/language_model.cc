#include "language/language_model.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <vector>

#include "language/lora_files.h"
#include "language/weight_codes.h"

namespace weft {
namespace {

using WeightSlot = Transformer::WeightSlot;

constexpr int64_t kRowsTogether = 64;

// body(begin, end) over blocks of rows, on all threads.
template <class F>
void ForRowBlocks(const Context& context, int64_t rows, F&& body) {
  const int64_t blocks = (rows + kRowsTogether - 1) / kRowsTogether;
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      body(block * kRowsTogether, std::min(rows, (block + 1) * kRowsTogether));
    }
  };
  if (context.pool == nullptr) return run(0, blocks);
  context.pool->ParallelForDynamic(blocks, 1, run);
}

void ReadNumbers(const Context& context, const StoredWeight& weight, const WeightSlot& slot) {
  if (slot.projection != nullptr) slot.projection->weight();  // made by one thread
  ForRowBlocks(context, slot.rows, [&](int64_t begin, int64_t end) {
    std::vector<float> rows((end - begin) * slot.columns);
    weight.ReadRows(begin, end, rows.data());
    slot.set(begin, rows);
  });
}

// The codes that hold all parts of a projection, if there are such.
std::optional<kernels::CodeWidth> CommonCodes(const ModelFile& file,
                                              const std::vector<const WeightSlot*>& parts) {
  std::optional<kernels::CodeWidth> common;
  for (const WeightSlot* part : parts) {
    const StoredWeight& weight = file.Find(part->name);
    const auto width = CodeWidthOf(weight.type());
    if (!width || weight.RowBytes(0) == nullptr) return std::nullopt;
    common = std::max(common.value_or(*width), *width);
  }
  return common;
}

// False where a block has no codes of this form; the projection is then read as numbers.
bool ReadAllCodes(const Context& context, const ModelFile& file, kernels::CodeWidth width,
                  const std::vector<const WeightSlot*>& parts) {
  parts[0]->projection->UseCodes(width);
  std::atomic<bool> exact = true;
  for (const WeightSlot* part : parts) {
    const StoredWeight& weight = file.Find(part->name);
    const int64_t blocks = part->columns / kernels::kQuantisedBlock;
    ForRowBlocks(context, part->rows, [&](int64_t begin, int64_t end) {
      std::vector<int8_t> codes(part->columns);
      std::vector<uint16_t> scales(blocks), offsets(blocks);
      for (int64_t row = begin; row < end; ++row) {
        if (!ReadCodes(weight.type(), weight.RowBytes(row), part->columns, codes.data(),
                       scales.data(), offsets.data())) {
          exact = false;
        }
        part->projection->SetCodes(part->first + row, codes.data(), scales.data(), offsets.data());
      }
    });
  }
  return exact;
}

}  // namespace

std::unique_ptr<Transformer> LoadTransformer(const Context& context, const ModelFile& file,
                                             const LoadOptions& options) {
  auto model = std::make_unique<Transformer>(file.config(), options.precision);
  const std::vector<WeightSlot> slots = model->Weights();
  std::vector<Projection*> order;
  std::map<Projection*, std::vector<const WeightSlot*>> parts;
  for (const WeightSlot& slot : slots) {
    if (slot.projection == nullptr) {
      ReadNumbers(context, file.Find(slot.name), slot);
      continue;
    }
    auto& list = parts[slot.projection];
    if (list.empty()) order.push_back(slot.projection);
    list.push_back(&slot);
  }
  // One matrix at a time, so that its f32 form and its part of the file are all that is in memory
  // beside the result.
  for (Projection* projection : order) {
    const auto& list = parts[projection];
    const bool codes =
        options.precision == Precision::kBFloat16 && options.keep_quantised && !options.keep_master;
    const auto width = codes ? CommonCodes(file, list) : std::nullopt;
    if (!width || !ReadAllCodes(context, file, *width, list)) {
      projection->UseNumbers();
      for (const WeightSlot* part : list) ReadNumbers(context, file.Find(part->name), *part);
      projection->Refresh(context);
      if (!options.keep_master) projection->FreeMaster();
    }
    file.ReleasePages();
  }
  if (!options.adapter.empty()) {
    AttachLoraAdapter(context, ReadLoraAdapter(options.adapter, file.config()), *model);
  }
  return model;
}

}  // namespace weft
