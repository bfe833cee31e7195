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

// The form that holds the codes of all parts of a projection, if there is one.
std::optional<kernels::CodeForm> CommonCodes(const ModelFile& file,
                                             const std::vector<const WeightSlot*>& parts) {
  std::optional<kernels::CodeForm> common;
  for (const WeightSlot* part : parts) {
    const StoredWeight& weight = file.Find(part->name);
    const auto form = CodeFormOf(weight.type());
    if (!form || weight.RowBytes(0) == nullptr) return std::nullopt;
    common = kernels::Common(common.value_or(*form), *form);
  }
  return common;
}

// False where a block has no codes of this form; the projection is then read as numbers.
bool ReadAllCodes(const Context& context, const ModelFile& file, kernels::CodeForm form,
                  const std::vector<const WeightSlot*>& parts) {
  parts[0]->projection->UseCodes(form);
  std::atomic<bool> exact = true;
  for (const WeightSlot* part : parts) {
    const StoredWeight& weight = file.Find(part->name);
    ForRowBlocks(context, part->rows, [&](int64_t begin, int64_t end) {
      CodedRow coded(part->columns);
      for (int64_t row = begin; row < end; ++row) {
        if (!ReadCodes(weight.type(), weight.RowBytes(row), coded)) exact = false;
        part->projection->SetCodes(part->first + row, coded.view());
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
  bool quantised = false;
  for (Projection* projection : order) {
    const auto& list = parts[projection];
    const bool codes =
        options.precision == Precision::kBFloat16 && options.keep_quantised && !options.keep_master;
    const auto form = codes ? CommonCodes(file, list) : std::nullopt;
    if (!form || !ReadAllCodes(context, file, *form, list)) {
      projection->UseNumbers();
      for (const WeightSlot* part : list) ReadNumbers(context, file.Find(part->name), *part);
      projection->Refresh(context);
      if (!options.keep_master) projection->FreeMaster();
    } else if (options.round_rows) {
      projection->RoundRows();
      quantised = true;
    }
    file.ReleasePages();
  }
  if (options.round_rows && !quantised) {
    throw Error(ErrorCode::kConfig,
                file.path() +
                    ": products of 8 bits need quantised weights and this file has none; " +
                    "write some with `weft convert " + file.path() + " NAME.gguf --type q8_0`");
  }
  if (!options.adapter.empty()) {
    AttachLoraAdapter(context, ReadLoraAdapter(options.adapter, file.config()), *model);
  }
  return model;
}

}  // namespace weft
