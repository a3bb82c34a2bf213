"""What a release of maskwise itself needs: built, checked and installed as users would."""
