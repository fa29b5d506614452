"""The steps of label support: features, other labels, confidence, checked candidates."""
