// Text encoders: a tiny one and, where it was fetched, all-MiniLM-L6-v2 against embeddings of the
// library transformers (make_encoder_cases.py), the bits that a text must have, and files that must
// be refused.
#include "language/text_encoder.h"

#include <algorithm>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>

#include "base/check.h"
#include "language/json.h"
#include "language/model_files.h"
#include "language/model_name.h"
#include "language/verify_encoder.h"
#include "tests/base/temporary_folder.h"
#include "tests/tensor/kernels_testing.h"

namespace weft {
namespace {

using testing::HasSubstr;

const std::string kData = WEFT_TEST_DATA "/language/";

// The tiny encoder, to be changed.
class Copy {
 public:
  Copy() { std::filesystem::copy(kData + "encoder", path(), kRecursive); }

  std::string path() const { return folder_.Path("encoder"); }
  std::string Path(const std::string& file) const { return path() + "/" + file; }
  void Set(const std::string& file, const std::string& key, JsonValue value) const {
    JsonValue json = FileExists(Path(file)) ? ReadJsonFile(Path(file)) : JsonValue::MakeObject();
    json.Set(key, std::move(value));
    WriteFileAtomic(Path(file), json.ToText());
  }
  // In the header of the weights; what becomes shorter is filled with spaces.
  void Rename(const std::string& from, const std::string& to) const {
    std::string bytes = ReadFile(Path("model.safetensors"));
    size_t end = 8;
    for (size_t i = 0; i < 8; ++i) end += static_cast<size_t>(uint8_t(bytes[i])) << (8 * i);
    std::string header = bytes.substr(8, end - 8);
    const size_t length = header.size();
    for (size_t at = header.find(from); at != std::string::npos;
         at = header.find(from, at + to.size())) {
      header.replace(at, from.size(), to);
    }
    header.resize(length, ' ');
    WriteFileAtomic(Path("model.safetensors"), bytes.replace(8, length, header));
  }
  void Remove(const std::string& file) const { std::filesystem::remove_all(Path(file)); }
  std::string Fault() const {
    try {
      TextEncoder::Load(path());
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }

 private:
  static constexpr auto kRecursive = std::filesystem::copy_options::recursive;
  TemporaryFolder folder_;
};

void ExpectRecorded(const std::string& model, const std::string& recording) {
  const VerifyReport report = VerifyEncoder({}, model, kData + recording);
  EXPECT_GT(report.checked, 100);
  EXPECT_EQ(report.failed, 0) << ToText(report, true);
}

TEST(TextEncoder, EmbeddingsAreThoseOfAnotherImplementation) {
  ExpectRecorded(kData + "encoder", "encoder_mean.json");
  {
    const Copy copy;
    copy.Set("1_Pooling/config.json", "pooling_mode_mean_tokens", JsonValue(false));
    copy.Set("1_Pooling/config.json", "pooling_mode_cls_token", JsonValue(true));
    JsonValue modules = JsonValue::MakeArray();
    const JsonValue before = ReadJsonFile(copy.Path("modules.json"));
    for (const JsonValue& module : before.Items().first(2)) modules.Append(module);
    WriteFileAtomic(copy.Path("modules.json"), modules.ToText());
    ExpectRecorded(copy.path(), "encoder_first.json");
    // The same embeddings of another length.
    EXPECT_GT(VerifyEncoder({}, kData + "encoder", kData + "encoder_first.json").failed, 0);
  }
  const Copy copy;
  copy.Set("config.json", "hidden_act", JsonValue("gelu_new"));
  copy.Set("1_Pooling/config.json", "pooling_mode_mean_tokens", JsonValue(false));
  copy.Set("1_Pooling/config.json", "pooling_mode_max_tokens", JsonValue(true));
  std::string modules = ReadFile(copy.Path("modules.json"));
  modules.erase(modules.rfind(",\n {"));  // without Normalize
  WriteFileAtomic(copy.Path("modules.json"), modules + "]");
  copy.Rename("\"bert.", "\"");
  ExpectRecorded(copy.path(), "encoder_max_gelu_new.json");
}

TEST(TextEncoder, NamesOfBertsFirstFilesAreKnown) {
  const Copy copy;
  copy.Rename("LayerNorm.weight", "LayerNorm.gamma");
  copy.Rename("LayerNorm.bias", "LayerNorm.beta");
  ExpectRecorded(copy.path(), "encoder_mean.json");
}

TEST(TextEncoder, MiniLmIsThatOfAnotherImplementation) {
  std::string path;
  try {
    path = ResolveModel("all-minilm-l6-v2");
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  ExpectRecorded(path, "minilm.json");
}

std::vector<std::string> Texts() {
  const JsonValue json = ReadJsonFile(kData + "encoder_mean.json");
  std::vector<std::string> texts;
  for (const JsonValue& text : json.Find("texts")->Items()) texts.push_back(text.AsString());
  return texts;
}

std::vector<float> Values(const Tensor& tensor) {
  const auto values = tensor.data<float>();
  return {values.begin(), values.end()};
}

TEST(TextEncoder, ATextHasTheSameBitsInEveryBatchAndOnEveryMachine) {
  const TextEncoder encoder = TextEncoder::Load(kData + "encoder");
  const std::vector<std::string> texts = Texts();
  std::vector<std::vector<float>> alone;
  for (const std::string& text : texts) alone.push_back(Values(encoder.Embed({}, {&text, 1})));
  const std::vector<std::string> turned(texts.rbegin(), texts.rend());
  ForEveryContext([&](const Context& context) {
    for (const int64_t together : {1, 100, 4096}) {
      const Tensor embeddings = encoder.Embed(context, turned, together);
      for (int64_t i = 0; i < std::ssize(texts); ++i) {
        EXPECT_TRUE(SameBits(Values(embeddings.Slice(i, i + 1)), *(alone.rbegin() + i)))
            << "text \"" << turned[static_cast<size_t>(i)] << "\", tokens together " << together;
      }
    }
  });
  EXPECT_EQ(encoder.Embed({}, {}).dim(0), 0);
}

TEST(TextEncoder, CutsALongTextBeforeWhatEndsIt) {
  const TextEncoder encoder = TextEncoder::Load(kData + "encoder");
  const int32_t begin = encoder.tokenizer().Find("[CLS]"), end = encoder.tokenizer().Find("[SEP]");
  EXPECT_EQ(encoder.Tokens(""), (std::vector<int32_t>{begin, end}));
  const std::vector<int32_t> ids = encoder.Tokens(std::string(200, '!'));
  ASSERT_EQ(ids.size(), 80u);
  EXPECT_EQ(ids.front(), begin);
  EXPECT_EQ(ids.back(), end);
  EXPECT_EQ(std::ranges::count(ids, encoder.tokenizer().Find("!")), 78);

  const Copy copy;  // without a word of sentence-transformers
  for (const char* file : {"modules.json", "1_Pooling", "sentence_bert_config.json"}) {
    copy.Remove(file);
  }
  const EncoderConfig config = TextEncoder::Load(copy.path()).config();
  EXPECT_EQ(config.max_tokens, 96);  // the model's positions
  EXPECT_EQ(config.pooling, Pooling::kMean);
  EXPECT_FALSE(config.normalise);
  copy.Set("tokenizer_config.json", "model_max_length", JsonValue(64));
  EXPECT_EQ(TextEncoder::Load(copy.path()).config().max_tokens, 64);
}

TEST(TextEncoder, WhatItDoesNotHaveIsRefusedByName) {
  struct Case {
    const char *file, *key;
    JsonValue value;
    const char* fault;
  };
  const Case cases[] = {
      {"config.json", "model_type", JsonValue("roberta"), "config.json: model_type: \"roberta\""},
      {"config.json", "hidden_act", JsonValue("mish"), "config.json: hidden_act: \"mish\""},
      {"config.json", "position_embedding_type", JsonValue("relative_key"),
       "config.json: position_embedding_type: \"relative_key\" is not supported"},
      {"config.json", "is_decoder", JsonValue(true), "config.json: is_decoder: true"},
      {"config.json", "add_cross_attention", JsonValue(true), "config.json: add_cross_attention"},
      {"config.json", "architectures", JsonValue::MakeArray({JsonValue("BertForTokenClassifier")}),
       "\"BertForTokenClassifier\" is not supported"},
      {"config.json", "num_attention_heads", JsonValue(5), "no multiple of 5 attention heads"},
      {"config.json", "num_hidden_layers", JsonValue(int64_t{1} << 40), "num_hidden_layers is"},
      {"config.json", "vocab_size", JsonValue(int64_t{1} << 25), "word_embeddings.weight [72, 32]"},
      {"config.json", "vocab_size", JsonValue(40), "the tokenizer has 72 tokens"},
      {"config.json", "intermediate_size", JsonValue(47), "intermediate.dense.bias [48], not [47]"},
      {"config.json", "num_hidden_layers", JsonValue(3), "16 tensors are missing"},
      {"config.json", "num_hidden_layers", JsonValue(1), "16 are not expected"},
      {"sentence_bert_config.json", "do_lower_case", JsonValue(true), "do_lower_case: true"},
      {"sentence_bert_config.json", "max_seq_length", JsonValue(97), "max_seq_length is 97"},
      {"sentence_bert_config.json", "max_seq_length", JsonValue(2), "2 tokens around a text"},
      {"1_Pooling/config.json", "pooling_mode_lasttoken", JsonValue(true),
       "pooling_mode_lasttoken: is not supported"},
      {"1_Pooling/config.json", "pooling_mode_mean_tokens", JsonValue(false), "0 are"},
      {"1_Pooling/config.json", "pooling_mode_cls_token", JsonValue(true), "2 are"},
      {"1_Pooling/config.json", "word_embedding_dimension", JsonValue(16), "hidden size 32"},
      {"tokenizer.json", "post_processor", JsonValue(), "0 tokens around a text"},
  };
  for (const Case& c : cases) {
    const Copy copy;
    copy.Set(c.file, c.key, c.value);
    EXPECT_THAT(copy.Fault(), HasSubstr(c.fault));
  }
}

TEST(TextEncoder, DamagedFilesAreRefused) {
  const auto modules = [](const std::string& from, const std::string& to) {
    const Copy copy;
    std::string text = ReadFile(copy.Path("modules.json"));
    WriteFileAtomic(copy.Path("modules.json"), text.replace(text.find(from), from.size(), to));
    return copy.Fault();
  };
  EXPECT_THAT(modules("models.Normalize", "models.Dense"), HasSubstr("[2].type: \"sentence_"));
  EXPECT_THAT(modules("1_Pooling", "../x"), HasSubstr("[1].path must be the name of a folder"));
  EXPECT_THAT(modules("\"1_Pooling\"", "\"gone\""), HasSubstr("gone/config.json"));
  EXPECT_THAT(modules("[", "{\"a\": ["), HasSubstr("modules.json"));

  const Copy renamed;
  renamed.Rename("layer.1.output.dense.bias", "layer.1.output.dense.bios");
  EXPECT_THAT(renamed.Fault(), HasSubstr("1 tensors are missing: "
                                         "bert.encoder.layer.1.output.dense.bias; 1 are not "
                                         "expected: bert.encoder.layer.1.output.dense.bios"));
  const Copy nan;
  std::string bytes = ReadFile(nan.Path("model.safetensors"));
  const size_t data = bytes.find("}}") + 2;
  const size_t first = (data + 7) / 8 * 8;
  bytes[first + 1] = 0x7e;  // of F16
  WriteFileAtomic(nan.Path("model.safetensors"), bytes);
  EXPECT_THAT(nan.Fault(), HasSubstr("embeddings.LayerNorm.bias holds a value that is not finite"));
  const Copy cut;
  WriteFileAtomic(cut.Path("model.safetensors"), bytes.substr(0, bytes.size() - 100));
  EXPECT_THAT(cut.Fault(), HasSubstr("model.safetensors"));

  try {
    TextEncoder::Load(WEFT_TEST_DATA "/language/minilm.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("is no text encoder"));
  }
}

TEST(TextEncoder, IsNoModelToTalkTo) {
  try {
    ModelFile::Open(kData + "encoder");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("\"bert\" is a text encoder"));
    EXPECT_THAT(error.message(), HasSubstr("similarity"));
  }
}

TEST(Cosine, IsThatOfTheAngle) {
  const std::vector<float> a = {3, 4}, b = {4, 3}, c = {-6, -8}, nothing = {0, 0};
  EXPECT_DOUBLE_EQ(Cosine(a, b), 24.0 / 25);
  EXPECT_DOUBLE_EQ(Cosine(a, c), -1);
  EXPECT_DOUBLE_EQ(Cosine(a, nothing), 0);
}

}  // namespace
}  // namespace weft
