// The changes that dm_control's suite makes to its model files when a task is loaded
// (dm_control/suite/{cartpole,lqr,manipulator,quadruped,stacker,swimmer,dog}.py,
// dm_control 1.0.50), made through MuJoCo's model specification. Each is a MujocoEdit once its
// number is given. Cameras, which move with the size of a model, are left where the file has them.
#pragma once

struct mjSpec_;

namespace weft {

// Hangs poles on the first one of cartpole.xml, up to `poles`, and lowers the floor below them.
void MakePoles(mjSpec_& spec, int poles);
// Builds the body of swimmer.xml, a head alone, of `links` links with a motor between any two.
void MakeLinks(mjSpec_& spec, int links);
// Makes a chain of `masses` in lqr.xml, the first `driven` of which have motors. The stiffness of
// the springs is left at 0, for the task to draw.
void MakeMasses(mjSpec_& spec, int masses, int driven);
// Takes all objects out of manipulator.xml but the ball or the peg, its target and, where it is to
// be inserted, the receptacle.
void KeepProps(mjSpec_& spec, bool peg, bool insert);
// Takes all boxes out of stacker.xml but the first `boxes`.
void KeepBoxes(mjSpec_& spec, int boxes);
// Makes a floor of quadruped.xml that reaches `size` m to each side, with nothing on it.
void MakeField(mjSpec_& spec, double size);
// Makes a floor of quadruped.xml that reaches 40 m to each side, with the terrain on it.
void MakeTerrain(mjSpec_& spec);
// Takes the terrain, and what senses it, out of quadruped.xml: walls and a ball remain.
void MakeArena(mjSpec_& spec);
// Makes a floor of dog.xml that reaches `size` m to each side, with nothing on it.
void MakeDogField(mjSpec_& spec, double size);

template <int poles>
void MakePoles(mjSpec_& spec) {
  MakePoles(spec, poles);
}
template <int links>
void MakeLinks(mjSpec_& spec) {
  MakeLinks(spec, links);
}
template <int masses, int driven>
void MakeMasses(mjSpec_& spec) {
  MakeMasses(spec, masses, driven);
}
template <bool peg, bool insert>
void KeepProps(mjSpec_& spec) {
  KeepProps(spec, peg, insert);
}
template <int boxes>
void KeepBoxes(mjSpec_& spec) {
  KeepBoxes(spec, boxes);
}
template <int size>
void MakeField(mjSpec_& spec) {
  MakeField(spec, size);
}
template <int size>
void MakeDogField(mjSpec_& spec) {
  MakeDogField(spec, size);
}

}  // namespace weft
