"""Extensions of the protocol that a server may have: skills and apps, loaded at their first use."""
