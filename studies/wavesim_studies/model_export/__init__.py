"""Export of models to the description files of other programs: SDF for Gazebo, URDF for ROS."""
