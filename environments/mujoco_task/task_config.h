// A task for a MuJoCo model as data: what is observed, how actions drive the model, what is
// rewarded, where episodes begin and end. It stands in a YAML file of its own,
//
//   environment:
//     mujoco: {model: arm.xml, frame_skip: 5}
//     observations: [{joint_position: all}, {joint_velocity: all, clip: 10}]
//     actions: [shoulder, elbow]
//     reward: {terms: [{site_distance: hand, to: ball, weight: -1}]}
//
// and is what `environment.arguments` of a run holds, so that the run keeps it whatever becomes of
// the file. docs/mujoco_task.md is its manual.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <string>
#include <vector>

#include "base/config.h"
#include "environments/mujoco/mujoco_quantity.h"

namespace weft {

// Numbers of the simulation, see mujoco_quantity.h.
struct QuantityConfig : Config {
  explicit QuantityConfig(std::string of_kind) : kind(std::move(of_kind)) {}
  void Fields(FieldVisitor& v) override;
  QuantityName Name() const { return {kind, names, to, component}; }

  std::string kind;
  std::vector<std::string> names;
  std::string to, component;
};

struct ObservationConfig : QuantityConfig {
  using QuantityConfig::QuantityConfig;
  void Fields(FieldVisitor& v) override;
  double clip = 0;  // to [-clip, clip]; 0: as it is
};

struct ConditionConfig : QuantityConfig {
  using QuantityConfig::QuantityConfig;
  void Fields(FieldVisitor& v) override;
  void Check() const override;
  std::vector<double> range;  // [low, high]
};

struct ToleranceConfig : Config {
  void Fields(FieldVisitor& v) override;
  void Check() const override;
  std::vector<double> bounds;  // [low, high]; empty: there is no tolerance
  double margin = 0, value_at_margin = 0.1;
  std::string sigmoid = "gaussian";
};

// Besides the kinds of quantities: healthy and control_cost, which have an amount.
struct TermConfig : QuantityConfig {
  using QuantityConfig::QuantityConfig;
  void Fields(FieldVisitor& v) override;
  bool amounts() const { return kind == "healthy" || kind == "control_cost"; }

  double amount = 0;
  double weight = 1;
  bool rate = false;           // the change per second in place of the value
  std::vector<double> target;  // subtracted; empty: zeros
  std::string measure = "value";
  ToleranceConfig tolerance;
};

struct NoiseConfig : Config {
  explicit NoiseConfig(std::string of_kind) : kind(std::move(of_kind)) {}
  void Fields(FieldVisitor& v) override;
  void Check() const override;

  std::string kind;  // joint_position or joint_velocity
  std::vector<std::string> names;
  double uniform = 0, normal = 0;  // half width; deviation
  std::vector<double> between;     // [low, high] of the value itself
};

struct ActionConfig : Config {
  explicit ActionConfig(std::string of_name) : name(std::move(of_name)) {}
  void Fields(FieldVisitor& v) override;
  void Check() const override;

  std::string name;           // of an actuator
  bool scaled = true;         // -1 .. 1 are the ends of the range
  std::vector<double> range;  // of the control; empty: the actuator's own
};

struct TaskModelConfig : Config {
  void Fields(FieldVisitor& v) override;
  // The model file as LoadMujocoModel takes it; throws Error(kConfig) when there is none.
  std::string Path() const;

  std::string folder;  // of the task file; "": here
  std::string model;
  int64_t frame_skip = 1;
  std::string content;  // SHA-256 of the model and the files that it names; "": not looked at yet
};

struct TaskConfig : Config {
  // id: "mujoco:" and the path of a task file or of a model, all of whose joints are then observed
  // and all of whose actuators are driven, for no reward. What is wrong with the file is thrown
  // when the task is asked for, by Check or Require, and not when all of it has been said
  // elsewhere.
  explicit TaskConfig(const std::string& id);

  void Fields(FieldVisitor& v) override;
  // Names that the model lacks, and the like.
  void Check() const override;
  // Throws Error(kConfig) when there is no task.
  void Require() const;

  std::string id;
  std::exception_ptr problem;  // of the file
  TaskModelConfig mujoco;
  std::deque<ObservationConfig> observations;
  std::deque<ActionConfig> actions;
  std::string combine = "sum";
  std::deque<TermConfig> terms;
  std::deque<ConditionConfig> termination;
  std::string keyframe;  // "": the model's own first state
  std::deque<NoiseConfig> noise;
  int64_t time_limit = 1000;
  std::string camera;

 private:
  void SetModel(const std::string& file);  // and the task that it is alone
};

}  // namespace weft
