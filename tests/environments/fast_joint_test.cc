#include "environments/box2d/fast_joint.h"

#include <array>
#include <gtest/gtest.h>
#include <vector>

namespace weft {
namespace {

// Two bars on a hull that falls onto a floor, with motors that turn back and forth.
class Walker {
 public:
  explicit Walker(bool fast) : world_(b2Vec2(0, -10)) {
    b2BodyDef definition;
    b2EdgeShape floor;
    floor.SetTwoSided(b2Vec2(-20, 0), b2Vec2(20, 0.5f));
    world_.CreateBody(&definition)->CreateFixture(&floor, 0);
    definition.type = b2_dynamicBody;
    definition.position = b2Vec2(0, 4);
    bodies_.push_back(Add(definition, 1.0f, 0.4f));
    for (const float side : {-1.0f, 1.0f}) {
      definition.position = b2Vec2(side, 3.6f);
      definition.angle = 0.1f * side;
      bodies_.push_back(Add(definition, 0.1f, 0.6f));
      b2RevoluteJointDef joint;
      joint.bodyA = bodies_[0];
      joint.bodyB = bodies_.back();
      joint.localAnchorA = b2Vec2(0.9f * side, -0.3f);
      joint.localAnchorB = b2Vec2(0, 0.5f);
      joint.enableMotor = joint.enableLimit = true;
      joint.maxMotorTorque = 15;
      joint.lowerAngle = -0.5f;
      joint.upperAngle = 0.7f;
      joints_.push_back(fast ? CreateFastJoint(world_, joint)
                             : static_cast<b2RevoluteJoint*>(world_.CreateJoint(&joint)));
    }
  }

  std::vector<float> Step(int t) {
    for (size_t i = 0; i < joints_.size(); ++i) {
      joints_[i]->SetMotorSpeed((t / 20 + static_cast<int>(i)) % 2 == 0 ? 3.0f : -2.0f);
      joints_[i]->SetMaxMotorTorque(t % 50 < 40 ? 15.0f : 0.5f);
    }
    world_.Step(0.02f, 60, 20);
    std::vector<float> state;
    for (const b2Body* body : bodies_) {
      const b2Vec2 place = body->GetPosition(), speed = body->GetLinearVelocity();
      state.insert(state.end(), {place.x, place.y, body->GetAngle(), speed.x, speed.y,
                                 body->GetAngularVelocity()});
    }
    for (const b2RevoluteJoint* joint : joints_) {
      state.push_back(joint->GetMotorTorque(50));
      state.push_back(joint->GetReactionForce(50).y);
    }
    return state;
  }
  b2World& world() { return world_; }

 private:
  b2Body* Add(const b2BodyDef& definition, float half_width, float half_height) {
    b2Body* body = world_.CreateBody(&definition);
    b2PolygonShape box;
    box.SetAsBox(half_width, half_height);
    b2FixtureDef fixture;
    fixture.shape = &box;
    fixture.density = 2;
    fixture.filter.groupIndex = -1;
    body->CreateFixture(&fixture);
    return body;
  }

  b2World world_;
  std::vector<b2Body*> bodies_;
  std::vector<b2RevoluteJoint*> joints_;
};

TEST(FastJoint, GivesTheBitsOfBox2d) {
  Walker fast(true), original(false);
  bool touched = false;
  for (int t = 0; t < 400; ++t) {
    ASSERT_EQ(fast.Step(t), original.Step(t)) << t;
    touched |= fast.world().GetContactCount() > 0;
  }
  EXPECT_TRUE(touched);
}

TEST(FastJoint, BelongsToItsWorld) {
  Walker walker(true);
  EXPECT_EQ(walker.world().GetJointCount(), 2);
  b2Body* hull = walker.world().GetJointList()->GetBodyA();
  EXPECT_NE(hull->GetJointList()->joint, nullptr);
  walker.Step(0);
  walker.world().DestroyBody(hull);  // and its joints with it
  EXPECT_EQ(walker.world().GetJointCount(), 0);
}

}  // namespace
}  // namespace weft
