#include "rlhf/counterpart.h"

#include "base/check.h"
#include "language/json.h"
#include "rlhf/tasks.h"

namespace weft {

void EpisodeConfig::Fields(FieldVisitor& v) {
  v.Field(
      "peer", peer,
      "another program that answers turns: tcp://HOST:PORT or ipc://PATH of a ROUTER socket, or "
      "http://HOST:PORT/PATH");
  v.Field("turns", turns, "of the model at most; 0: the task's", Range::Between(0, 1000));
  v.Choice("role", role, {"user", "tool"}, "whose words the answers to turns are");
  patience.Fields(v);
}

void EpisodeConfig::Check() const {
  if (!peer.empty() && turns == 0) throw ConfigProblem("turns", "say how many the model has");
}

int64_t TurnsOf(const EpisodeConfig& config, const std::string& task) {
  if (!config.peer.empty()) return config.turns;
  if (task.empty()) return 1;
  const int64_t turns = Task::Turns(task);
  return turns > 1 && config.turns > 0 ? config.turns : turns;
}

namespace {

class TaskCounterpart final : public Counterpart {
 public:
  explicit TaskCounterpart(const std::string& task) : task_(task) {}
  std::vector<Reply> Answer(std::span<const Dialogue> dialogues) override {
    std::vector<Reply> replies;
    for (const Dialogue& dialogue : dialogues) {
      const TaskReply reply =
          task_.Answer(dialogue.turns.back(), dialogue.expected, dialogue.finished);
      replies.push_back({.text = reply.text, .over = reply.over, .score = reply.score});
    }
    return replies;
  }

 private:
  const Task task_;
};

class RemoteCounterpart final : public Counterpart {
 public:
  explicit RemoteCounterpart(const EpisodeConfig& config) : peer_(config.peer, config.patience) {}

  std::vector<Reply> Answer(std::span<const Dialogue> dialogues) override {
    try {
      return Ask(dialogues);
    } catch (Error& error) {
      error.AddContext("episodes.peer");
      throw;
    }
  }

 private:
  std::vector<Reply> Ask(std::span<const Dialogue> dialogues) {
    JsonValue prompts = JsonValue::MakeArray(), labels = JsonValue::MakeArray(),
              turns = JsonValue::MakeArray(), finished = JsonValue::MakeArray();
    for (const Dialogue& dialogue : dialogues) {
      prompts.Append(JsonValue(dialogue.prompt));
      labels.Append(JsonValue(dialogue.expected));
      JsonValue words = JsonValue::MakeArray();
      for (const std::string& turn : dialogue.turns) words.Append(JsonValue(turn));
      turns.Append(std::move(words));
      finished.Append(JsonValue(dialogue.finished));
    }
    const std::string text = peer_.Ask(JsonValue::MakeObject({{"prompts", std::move(prompts)},
                                                              {"labels", std::move(labels)},
                                                              {"turns", std::move(turns)},
                                                              {"finished", std::move(finished)}})
                                           .ToText());
    const JsonValue json = ParseJson(text, peer_.address());
    const auto list = [&](const char* name) {
      const JsonValue* const found = json.IsObject() ? json.Find(name) : nullptr;
      if (found == nullptr || !found->IsArray() || found->Items().size() != dialogues.size()) {
        Fail("no list \"" + std::string(name) + "\" of " + std::to_string(dialogues.size()));
      }
      return found->Items();
    };
    const auto texts = list("replies"), scores = list("scores");
    std::vector<Reply> replies(dialogues.size());
    for (size_t i = 0; i < replies.size(); ++i) {
      replies[i].over = texts[i].IsNull();
      if (!replies[i].over) {
        if (!texts[i].IsString()) Fail("reply " + std::to_string(i) + " is neither text nor null");
        replies[i].text = texts[i].AsString();
      }
      if (!scores[i].GetDouble(replies[i].score)) {
        Fail("score " + std::to_string(i) + " is not a number");
      }
    }
    return replies;
  }
  [[noreturn]] void Fail(const std::string& reason) const {
    throw Error(ErrorCode::kCorrupt, peer_.address() + ": " + reason);
  }

  RemotePeer peer_;
};

}  // namespace

std::unique_ptr<Counterpart> MakeCounterpart(const EpisodeConfig& config, const std::string& task) {
  if (!config.peer.empty()) return std::make_unique<RemoteCounterpart>(config);
  if (TurnsOf(config, task) > 1) return std::make_unique<TaskCounterpart>(task);
  return nullptr;
}

}  // namespace weft
