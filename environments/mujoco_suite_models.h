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

template <int poles>
void MakePoles(mjSpec_& spec) {
  MakePoles(spec, poles);
}
template <int links>
void MakeLinks(mjSpec_& spec) {
  MakeLinks(spec, links);
}

}  // namespace weft
