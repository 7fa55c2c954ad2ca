"""What the rules backend knows of the simulators behind the multi-turn tasks of BFCL: one toolbox a class."""
