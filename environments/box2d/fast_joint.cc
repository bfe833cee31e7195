// The iterations of Box2D's velocity solver are one chain of additions and multiplications, each of
// which waits for the one before: a step of a robot in the air is a few hundred turns of it, and
// lasts as long as the chain. Motors at their torque limit and angle limits that are not touched
// change nothing, so the joint here branches around them. The processor predicts these branches and
// leaves their part of the chain aside. What is computed is computed in Box2D's order.
#include "environments/box2d/fast_joint.h"

#include <algorithm>
#include <new>

namespace weft {
namespace {

class FastJoint final : public b2RevoluteJoint {
 public:
  // Takes over everything, the world's lists included.
  explicit FastJoint(const b2RevoluteJoint& joint) : b2RevoluteJoint(joint) {}

 protected:
  void SolveVelocityConstraints(const b2SolverData& data) override {
    b2Velocity &a = data.velocities[m_indexA], &b = data.velocities[m_indexB];
    float spin_a = a.w, spin_b = b.w;  // rad/s
    const bool turns = m_invIA + m_invIB != 0;
    if (m_enableMotor && turns) {
      const float most = data.step.dt * m_maxMotorTorque;
      const float impulse = -m_axialMass * (spin_b - spin_a - m_motorSpeed);
      const float sum = std::max(-most, std::min(m_motorImpulse + impulse, most));
      if (const float change = sum - m_motorImpulse; change != 0) {
        m_motorImpulse = sum;
        spin_a -= m_invIA * change;
        spin_b += m_invIB * change;
      }
    }
    if (m_enableLimit && turns) {
      const float rate = data.step.inv_dt;
      if (const float change = Limit(m_angle - m_lowerAngle, rate, spin_b - spin_a, m_lowerImpulse);
          change != 0) {
        spin_a -= m_invIA * change;
        spin_b += m_invIB * change;
      }
      if (const float change = Limit(m_upperAngle - m_angle, rate, spin_a - spin_b, m_upperImpulse);
          change != 0) {
        spin_a += m_invIA * change;
        spin_b -= m_invIB * change;
      }
    }
    const b2Vec2 gap = b.v + b2Cross(spin_b, m_rB) - a.v - b2Cross(spin_a, m_rA);
    const b2Vec2 impulse = m_K.Solve(-gap);
    m_impulse += impulse;
    a.v -= m_invMassA * impulse;
    a.w = spin_a - m_invIA * b2Cross(m_rA, impulse);
    b.v += m_invMassB * impulse;
    b.w = spin_b + m_invIB * b2Cross(m_rB, impulse);
  }

 private:
  // Adds to the impulse of a limit that is `distance` away and approached at -speed; returns the
  // change.
  float Limit(float distance, float rate, float speed, float& total) const {
    const float impulse = -m_axialMass * (speed + std::max(distance, 0.0f) * rate);
    const float sum = std::max(total + impulse, 0.0f);
    const float change = sum - total;
    total = sum;
    return change;
  }
};

}  // namespace

b2RevoluteJoint* CreateFastJoint(b2World& world, const b2RevoluteJointDef& definition) {
  // Box2D makes joints of its own classes only. One that derives from its class and adds nothing
  // takes the place of what it made: the world and the bodies keep pointing to it, and Box2D calls
  // it through its virtual functions alone.
  static_assert(sizeof(FastJoint) == sizeof(b2RevoluteJoint));
  auto* made = static_cast<b2RevoluteJoint*>(world.CreateJoint(&definition));
  const b2RevoluteJoint copy = *made;
  return new (made) FastJoint(copy);
}

}  // namespace weft
