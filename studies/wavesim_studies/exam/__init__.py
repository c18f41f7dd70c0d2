"""The exam: ten frozen scenarios of underwater navigation, on which any navigation filter can be scored."""
