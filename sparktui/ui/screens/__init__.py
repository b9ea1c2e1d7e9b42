"""The screens: picker, live, and the questions asked on top of them."""
