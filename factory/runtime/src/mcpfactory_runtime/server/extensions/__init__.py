"""Extensions of the protocol that a server may offer: skills and apps, loaded at their first use."""
