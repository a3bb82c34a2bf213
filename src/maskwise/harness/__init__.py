"""Running predictors and scoring what they said."""
