// Supervised fine-tuning: the next token of texts, of the assistant's words in chats, or of answers
// to prompts. The loss is the mean over all learnt tokens of a step, so it depends neither on how
// examples are laid side by side nor on micro-batches; rows are packed without padding, and
// attention keeps to each example.
//
//   data ==batch==> learner
#include "language/model_name.h"
#include "rlhf/next_token.h"

namespace weft {
namespace {

class Sft final : public OfflineTraining {
 public:
  std::string learn = "answers";
  double neftune_alpha = 0;

  Sft() {
    total_steps = 100;
    schedule = "cosine";
  }
  void Fields(FieldVisitor& v) override {
    OfflineTraining::Fields(v);
    v.Choice("learn", learn, {"answers", "all"},
             "of chats and of prompts with completions: what the assistant says, or every token");
    v.Field("neftune_alpha", neftune_alpha,
            "noise on the embeddings while training, uniform in +-alpha / sqrt(length * width); 0: "
            "none",
            Range::AtLeast(0));
  }
  std::vector<Figure> Judge(const Context& context, Transformer& judged,
                            const Examples& examples) const override {
    return JudgeNextToken(context, judged, examples, micro_batch_tokens);
  }

 protected:
  std::unique_ptr<OfflineLearner> MakeLearner(const Replica& replica) const override {
    return std::make_unique<NextTokenLearner>(*this, replica, neftune_alpha);
  }
  ExampleOptions ExamplesWanted() const override {
    return {.model = ResolveModel(model),
            .kind = ExampleKind::kSequence,
            .part = learn == "all" ? LearntPart::kAll : LearntPart::kAnswers,
            .seed = seed};
  }
};

WEFT_REGISTER_LANGUAGE_METHOD(Sft, "sft",
                              "supervised fine-tuning of a language model on texts, chats, or "
                              "prompts with answers");

}  // namespace
}  // namespace weft
