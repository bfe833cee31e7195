#include "language/verify_encoder.h"

#include <vector>

#include "language/json_keys.h"
#include "language/text_encoder.h"

namespace weft {

VerifyReport VerifyEncoder(const Context& context, const std::string& model,
                           const std::string& recording) {
  const JsonValue json = ReadJsonFile(recording);
  JsonKeys keys(json, recording);
  const std::vector<std::string> texts = keys.Strings("texts");
  const double tolerance = keys.Number("tolerance").value_or(1e-5);
  const JsonValue& rows = keys.Required("embeddings");
  if (texts.empty() || !rows.IsArray() || rows.Items().size() != texts.size()) {
    keys.Fail("embeddings", "must be a list with an embedding of each of the texts");
  }
  const TextEncoder encoder = TextEncoder::Load(model);
  const Tensor embeddings = encoder.Embed(context, texts);
  Comparison comparison(model);
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<double> want;
    if (rows.Items()[i].IsArray()) {
      for (const JsonValue& value : rows.Items()[i].Items()) {
        if (!value.GetDouble(want.emplace_back())) want.clear();
      }
    }
    const auto got = embeddings.Slice(static_cast<int64_t>(i), static_cast<int64_t>(i) + 1);
    const auto values = got.data<float>();
    if (want.size() != values.size()) {
      keys.Fail("embeddings", "[" + std::to_string(i) + "] must have " +
                                  std::to_string(values.size()) + " numbers, not " +
                                  std::to_string(want.size()));
    }
    comparison.Check("text " + std::to_string(i), std::vector<double>(values.begin(), values.end()),
                     want, tolerance);
  }
  return comparison.Report();
}

}  // namespace weft
